// What context-parallel ranks send to each other is what the program says.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <utility>

#include "core/lowering/lowering.hpp"
#include "tests/core/program/volumes.hpp"
#include "tests/executor/runtime/training_fixture.hpp"

namespace shardwright::executor {
namespace {

// Counts what this member sends to others in all-to-alls, to which shifts of a ring belong.
class CountingCommunicator final : public ForwardingCommunicator {
 public:
  CountingCommunicator(std::unique_ptr<Communicator> with, std::atomic<std::size_t>& sent)
      : ForwardingCommunicator(std::move(with)), sent_(sent) {}

  void all_to_all(const void* in, std::span<const std::size_t> sent, void* out,
                  std::span<const std::size_t> received, Queue queue) override {
    for (int peer = 0; peer < size(); ++peer)
      if (peer != rank()) sent_ += sent[static_cast<std::size_t>(peer)];
    ForwardingCommunicator::all_to_all(in, sent, out, received, queue);
  }

 private:
  std::atomic<std::size_t>& sent_;
};

TEST(SentBytes, OfContextParallelRanksAreThoseOfTheProgram) {
  const ModelSpec model = small_llama();
  for (const auto& [kind, cp] : {std::pair{ContextParallelKind::Ring, 2},
                                 {ContextParallelKind::Ring, 4},
                                 {ContextParallelKind::Ulysses, 2}}) {
    for (const RecomputePolicy recompute : {RecomputePolicy::None, RecomputePolicy::Full}) {
      Plan plan = one_rank_plan();
      plan.cp = cp;
      plan.context_parallel = kind;
      plan.recompute = recompute;
      std::atomic<std::size_t> sent{0};
      const auto count = [&](std::unique_ptr<Communicator> with) {
        return std::make_unique<CountingCommunicator>(std::move(with), sent);
      };
      on_ranks(
          model, plan, {.steps = 1},
          [](RankTrainer& trainer, const BatchLoader& loader) {
            trainer.step(0, loader.load(0, 0, trainer.place()[Axis::Context]));
          },
          load_stack("shardwright"), count);
      const Program program = lower(model, plan, load_stack("shardwright"));
      const double expected = volumes(program).front().of(Group::Context).value();
      EXPECT_EQ(static_cast<double>(sent), expected * cp);
      EXPECT_GT(expected, 0.0);
    }
  }
}

}  // namespace
}  // namespace shardwright::executor
