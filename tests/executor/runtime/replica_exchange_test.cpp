// Replicas that make local steps or compress what they send, beside an all-reduce of the gradients.
#include "core/lowering/replica_exchange.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/lowering/lowering.hpp"
#include "core/program/executable.hpp"
#include "core/program/groups.hpp"
#include "core/spec/plan_text.hpp"
#include "executor/runtime/run_checks.hpp"
#include "tests/executor/runtime/training_fixture.hpp"
#include "tests/thrown.hpp"

namespace shardwright::executor {
namespace {

Plan agreeing(ReplicaSync sync, ReplicaCompression compression) {
  Plan plan = two_replicas();
  plan.replicas.sync = sync;
  plan.replicas.compression = compression;
  return plan;
}

using enum ReplicaCompression;
constexpr ReplicaSync kEachStep = ReplicaSync::AllReduce, kLocally = ReplicaSync::LocalSteps;

// With a large epsilon, Adam's step is linear in the gradients, and so the mean of the replicas'
// steps is the step by their mean. Clipping would not be.
TrainingOptions linear_steps() {
  TrainingOptions options;
  options.steps = 6;
  options.epsilon = 1e3;
  options.learning_rate = 100.0;
  options.warmup_steps = 1;
  options.clip_norm = 0.0;
  options.weight_decay = 0.0;
  return options;
}

TrainingOptions a_few_steps() {
  return {.steps = 6, .learning_rate = 3e-3, .warmup_steps = 2};
}

double furthest(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] / b[i] - 1.0));
  return worst;
}

TEST(LocalSteps, OfOneWithTheMeanAreAnAllReduce) {
  const std::vector<double> expected = train(small_llama(), two_replicas(), linear_steps());
  EXPECT_LT(expected.back(), 0.999 * expected.front()) << "nothing is learnt";
  EXPECT_LT(furthest(train(small_llama(), agreeing(kLocally, None), linear_steps()), expected),
            1e-5);
  Plan diloco = agreeing(kLocally, None);
  diloco.replicas.outer = OuterOptimizer::Nesterov;
  diloco.replicas.outer_learning_rate = 1.0;
  diloco.replicas.outer_momentum = 0.0;
  EXPECT_LT(furthest(train(small_llama(), diloco, linear_steps()), expected), 1e-5);
  Plan groups = agreeing(kLocally, None);
  groups.dp = 4;
  groups.zero_stage = 3;
  groups.shard_group = 2;
  EXPECT_LT(furthest(train(small_llama(), groups, linear_steps()), expected), 1e-5);
}

// Between exchanges replicas drift apart; after one their parameters are the same.
TEST(LocalSteps, AgreeAtEachExchangeAlone) {
  Plan plan = agreeing(kLocally, None);
  plan.replicas.inner_steps = 3;
  plan.replicas.outer = OuterOptimizer::Nesterov;
  TrainingOptions options = a_few_steps();
  std::mutex mutex;
  std::vector<std::vector<float>> after_two(2), after_three(2);
  on_ranks(small_llama(), plan, options, [&](RankTrainer& trainer, const BatchLoader& loader) {
    const auto weights = [&] {
      std::vector<float> values;
      trainer.parameters().read(OptimizerArray::Weights, 0, trainer.parameters().own(0), values);
      return values;
    };
    run_steps(trainer, loader, 0, 2);
    std::vector<float> before = weights();
    run_steps(trainer, loader, 2, 3);
    const std::lock_guard lock(mutex);
    after_two[static_cast<std::size_t>(trainer.rank())] = std::move(before);
    after_three[static_cast<std::size_t>(trainer.rank())] = weights();
  });
  EXPECT_NE(after_two[0], after_two[1]);
  EXPECT_EQ(after_three[0], after_three[1]);
}

Plan streaming(std::int64_t inner_steps, std::int64_t fragments, std::int64_t overlap_steps) {
  Plan plan = agreeing(kLocally, None);
  plan.replicas.inner_steps = inner_steps;
  plan.replicas.fragments = fragments;
  plan.replicas.overlap_steps = overlap_steps;
  return plan;
}

// The weights of each layer on each replica after so many steps: [replica][layer].
std::vector<std::vector<std::vector<float>>> weights_after(const Plan& plan, std::int64_t steps) {
  std::mutex mutex;
  std::vector<std::vector<std::vector<float>>> weights(2);
  on_ranks(small_llama(), plan, a_few_steps(),
           [&](RankTrainer& trainer, const BatchLoader& loader) {
             run_steps(trainer, loader, 0, steps);
             std::vector<std::vector<float>> own;
             for (PartId layer = 0; layer < 4; ++layer) {
               const std::size_t unit = trainer.parameters().layout().units_of(layer).front();
               trainer.parameters().read(OptimizerArray::Weights, unit,
                                         trainer.parameters().own(unit), own.emplace_back());
             }
             const std::lock_guard lock(mutex);
             weights[static_cast<std::size_t>(trainer.rank())] = std::move(own);
           });
  return weights;
}

// Four layers in two fragments: the second one begins after two steps of four and is taken over
// after another, the first one two steps later each. What replicas have taken over is the same.
TEST(StreamingDiLoCo, TakesOverEachFragmentAtItsStep) {
  for (const FragmentOrder order : enumerators<FragmentOrder>()) {
    Plan plan = streaming(4, 2, 1);
    plan.replicas.outer = OuterOptimizer::Nesterov;
    plan.replicas.fragment_order = order;
    const auto agreed = [&](std::int64_t steps) {
      const auto weights = weights_after(plan, steps);
      std::vector<bool> same;
      for (std::size_t layer = 0; layer < 4; ++layer)
        same.push_back(weights[0][layer] == weights[1][layer]);
      return same;
    };
    const bool strided = order == FragmentOrder::Strided;
    const std::vector<bool> none(4, false);
    const std::vector<bool> first =
        strided ? std::vector{true, false, true, false} : std::vector{true, true, false, false};
    std::vector<bool> second = first;
    second.flip();
    EXPECT_EQ(agreed(2), none);
    EXPECT_EQ(agreed(3), second);
    EXPECT_EQ(agreed(4), none);
    EXPECT_EQ(agreed(5), first);
  }
}

// A replica goes on with a share of what it has by itself when the outcome arrives: the mean of
// what was sent, or Nesterov's first step from the initial weights.
TEST(StreamingDiLoCo, MixesTheOutcomeWithItsOwn) {
  const auto alone = [](std::int64_t steps) { return weights_after(streaming(100, 1, 0), steps); };
  const auto initial = alone(0), sent = alone(3);
  for (const OuterOptimizer outer : enumerators<OuterOptimizer>()) {
    for (const std::int64_t overlap : {0, 1}) {
      Plan plan = streaming(3, 1, overlap);
      plan.replicas.local_share = 0.25;
      plan.replicas.outer = outer;
      const auto own = alone(3 + overlap), mixed = weights_after(plan, 3 + overlap);
      for (std::size_t replica = 0; replica < 2; ++replica) {
        for (std::size_t i = 0; i < own[replica][1].size(); ++i) {
          const float mean = 0.5F * (sent[0][1][i] + sent[1][1][i]), from = initial[0][1][i];
          const float outcome =
              outer == OuterOptimizer::Average ? mean : from - 0.7F * 1.9F * (from - mean);
          ASSERT_NEAR(mixed[replica][1][i], 0.75F * outcome + 0.25F * own[replica][1][i], 1e-6F);
        }
      }
    }
  }
}

// Its all-reduces of many elements wait from one of them on until they are let go.
class HeldCommunicator final : public ForwardingCommunicator {
 public:
  HeldCommunicator(std::unique_ptr<Communicator> with, int first, std::shared_future<void> go)
      : ForwardingCommunicator(std::move(with)), first_(first), go_(std::move(go)) {}

  void all_reduce(void* data, std::size_t elements, Element element, Reduction reduction,
                  Queue queue) override {
    const bool waits = elements > 1000 && ++exchanges_ >= first_;
    if (waits && go_.wait_for(std::chrono::seconds(20)) != std::future_status::ready)
      throw CommunicationError("a step waits for the exchange beside it");
    ForwardingCommunicator::all_reduce(data, elements, element, reduction, queue);
  }

 private:
  int first_ = 1, exchanges_ = 0;
  std::shared_future<void> go_;
};

// Steps go on while an exchange does not, which is let go after so many steps.
void expect_steps_beside(const Plan& plan, int exchange, std::int64_t steps) {
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  std::atomic<int> stepped = 0;
  on_ranks(
      small_llama(), plan, a_few_steps(),
      [&](RankTrainer& trainer, const BatchLoader& loader) {
        run_steps(trainer, loader, 0, steps);
        if (++stepped == 2) go.set_value();
        run_steps(trainer, loader, steps, steps + 1);
        EXPECT_GT(trainer.exchanged_bytes(), 0.0);
      },
      load_stack("shardwright"),
      [&](std::unique_ptr<Communicator> inner) {
        return std::make_unique<HeldCommunicator>(std::move(inner), exchange, gone);
      });
}

// The second of two fragments is taken over in the step in which the first one is sent, of which
// nothing waits for the other.
TEST(StreamingDiLoCo, StepsWhileItExchanges) {
  expect_steps_beside(streaming(2, 1, 2), 1, 3);
  expect_steps_beside(streaming(2, 2, 1), 2, 2);
}

// All elements, or matrices of full rank, are what they were; 8 and 16 bits are near it.
TEST(Compression, OfEverythingIsExactAndOfFewerBitsNear) {
  const std::vector<double> expected = train(small_llama(), two_replicas(), a_few_steps());
  Plan topk = agreeing(kEachStep, TopK);
  topk.replicas.topk_ratio = 1.0;
  EXPECT_LT(furthest(train(small_llama(), topk, a_few_steps()), expected), 1e-6);
  Plan powersgd = agreeing(kEachStep, PowerSgd);
  powersgd.replicas.powersgd_rank = 100'000;
  EXPECT_LT(furthest(train(small_llama(), powersgd, a_few_steps()), expected), 1e-3);
  EXPECT_LT(furthest(train(small_llama(), agreeing(kEachStep, Bf16), a_few_steps()), expected),
            5e-3);
  EXPECT_LT(furthest(train(small_llama(), agreeing(kEachStep, Int8), a_few_steps()), expected),
            1e-2);
  EXPECT_LT(furthest(train(small_llama(), agreeing(kEachStep, Fp8), a_few_steps()), expected),
            2e-2);
}

// In bf16, exchanges carry the optimizer's weights and gradients in fp32 as before.
TEST(ReplicasInBf16, FollowThoseInFp32) {
  Plan diloco = agreeing(kLocally, None);
  diloco.replicas.inner_steps = 2;
  diloco.replicas.outer = OuterOptimizer::Nesterov;
  for (Plan plan : {diloco, agreeing(kEachStep, Int8), agreeing(kEachStep, PowerSgd)}) {
    const std::vector<double> expected = train(small_llama(), plan, a_few_steps());
    plan.precision = Precision::Bf16;
    EXPECT_LT(furthest(train(small_llama(), plan, a_few_steps()), expected), 0.01)
        << replicas_text(plan);
  }
}

Plan served_by(std::int64_t servers, std::int64_t replicas, ServerUpdates updates,
               std::int64_t staleness = 0) {
  Plan plan = one_rank_plan();
  plan.dp = replicas;
  plan.replicas.sync = ReplicaSync::ParameterServer;
  plan.replicas.servers = servers;
  plan.replicas.server_updates = updates;
  plan.replicas.staleness = staleness;
  return plan;
}

// Synchronous servers apply what an all-reduce adds up, whatever their number, with clipping. A
// bound of no steps is the same.
TEST(ParameterServers, ThatAreSynchronousTrainAsAnAllReduce) {
  for (const ModelSpec& model : {small_llama(), small_gpt2()}) {
    const std::vector<double> expected = train(model, two_replicas(), a_few_steps());
    for (const std::int64_t servers : {1, 2, 3}) {
      const Plan plan = served_by(servers, 2, ServerUpdates::Synchronous);
      EXPECT_LT(furthest(train(model, plan, a_few_steps()), expected), 1e-5) << servers;
    }
    const Plan bounded = served_by(2, 2, ServerUpdates::BoundedStaleness, 0);
    EXPECT_LT(furthest(train(model, bounded, a_few_steps()), expected), 1e-5);
  }
}

// Servers keep fp32 weights and send them rounded.
TEST(ParameterServers, TrainInBf16AsAnAllReduceDoes) {
  Plan all_reduce = two_replicas(), served = served_by(2, 2, ServerUpdates::Synchronous);
  all_reduce.precision = served.precision = Precision::Bf16;
  EXPECT_LT(furthest(train(small_llama(), served, a_few_steps()),
                     train(small_llama(), all_reduce, a_few_steps())),
            1e-3);
}

// After a step all replicas of synchronous servers have the same weights.
TEST(ParameterServers, GiveAllReplicasTheSame) {
  std::mutex mutex;
  std::vector<std::vector<float>> weights(3);
  const Plan plan = [] {
    Plan three = served_by(2, 3, ServerUpdates::Synchronous);
    three.global_batch = 9;
    return three;
  }();
  on_ranks(
      small_llama(), plan, a_few_steps(), [&](RankTrainer& trainer, const BatchLoader& loader) {
        run_steps(trainer, loader, 0, 2);
        std::vector<float> values;
        trainer.parameters().read(OptimizerArray::Weights, 1, trainer.parameters().own(1), values);
        const std::lock_guard lock(mutex);
        weights[static_cast<std::size_t>(trainer.rank())] = std::move(values);
      });
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_EQ(weights[0], weights[2]);
}

// A replica that is slow holds the others up, but not before they are as far ahead as they may be.
TEST(ParameterServers, KeepTheirBoundOfStaleness) {
  for (const std::int64_t bound : {1, 3}) {
    std::mutex mutex;
    std::int64_t most_ahead = 0, most_stale = 0;
    const Plan plan = served_by(2, 4, ServerUpdates::BoundedStaleness, bound);
    on_ranks(small_llama(), plan, {.steps = 12, .learning_rate = 1e-3, .warmup_steps = 2},
             [&](RankTrainer& trainer, const BatchLoader& loader) {
               for (std::int64_t step = 0; step < 12; ++step) {
                 if (trainer.rank() == 3)
                   std::this_thread::sleep_for(std::chrono::milliseconds(100));
                 const Batch batch = loader.load(static_cast<std::uint64_t>(step) * 8,
                                                 trainer.place()[Axis::Data], 0);
                 const StepReport report = trainer.step(step, batch);
                 const std::lock_guard lock(mutex);
                 most_ahead = std::max(most_ahead, report.update->ahead);
                 most_stale = std::max(most_stale, report.update->staleness);
               }
             });
    EXPECT_EQ(most_ahead, bound);
    EXPECT_LE(most_stale, 3 * (2 * bound + 1));
    EXPECT_GT(most_stale, 0);
  }
}

// Without an agreement the loss still falls.
TEST(ParameterServers, LearnFromStaleUpdates) {
  const std::vector<double> losses =
      train(small_llama(), served_by(2, 2, ServerUpdates::Asynchronous), kTwentySteps);
  EXPECT_LT(losses.back(), 0.9 * losses.front());
}

// The states that servers hold go into those of the first replica, which checkpoints save: another
// run goes on from them as if there had been no stop.
TEST(ParameterServers, GoOnFromTheirStates) {
  const Plan plan = served_by(2, 2, ServerUpdates::Synchronous);
  std::vector<std::vector<float>> states;
  std::vector<double> whole, rest;
  const auto for_each_state = [](RankTrainer& trainer, const auto& visit) {
    for (std::size_t unit = 0; unit < trainer.parameters().layout().units.size(); ++unit) {
      for (const OptimizerArray array :
           {OptimizerArray::Weights, OptimizerArray::FirstMoments, OptimizerArray::SecondMoments})
        visit(unit, array);
    }
  };
  on_ranks(small_llama(), plan, a_few_steps(),
           [&](RankTrainer& trainer, const BatchLoader& loader) {
             run_steps(trainer, loader, 0, 3);
             trainer.collect_states();
             const std::vector<double> losses = run_steps(trainer, loader, 3, 6);
             if (trainer.rank() == 0) whole = losses;
           });
  on_ranks(small_llama(), plan, a_few_steps(),
           [&](RankTrainer& trainer, const BatchLoader& loader) {
             run_steps(trainer, loader, 0, 3);
             trainer.collect_states();
             if (trainer.rank() != 0) return;
             for_each_state(trainer, [&](std::size_t unit, OptimizerArray array) {
               trainer.parameters().read(array, unit, trainer.parameters().own(unit),
                                         states.emplace_back());
             });
           });
  on_ranks(small_llama(), plan, a_few_steps(),
           [&](RankTrainer& trainer, const BatchLoader& loader) {
             std::size_t next = 0;
             for_each_state(trainer, [&](std::size_t unit, OptimizerArray array) {
               trainer.parameters().write(array, unit, 0, states[next++]);
             });
             const std::vector<double> losses = run_steps(trainer, loader, 3, 6);
             if (trainer.rank() == 0) rest = losses;
           });
  EXPECT_LT(furthest(rest, whole), 1e-5);
}

// Each gradient goes to one server and each parameter comes from one.
TEST(ParameterServers, CarryThePredictedBytes) {
  for (const ServerUpdates updates : enumerators<ServerUpdates>()) {
    Plan plan = served_by(2, 2, updates, 2);
    if (updates == ServerUpdates::Synchronous) plan.precision = Precision::Bf16;
    const Program program = lower(small_llama(), plan, load_stack("shardwright"));
    double predicted = 0.0;
    for (const Call& call : program.stages[0].calls) {
      for (const Op& op : program.blocks[call.block].ops) {
        if (is_server_transfer(op.kind))
          predicted += std::get<CommunicationWork>(op.work).bytes.value() * 4.0;
      }
    }
    EXPECT_GT(predicted, 0.0);
    on_ranks(small_llama(), plan, a_few_steps(),
             [&](RankTrainer& trainer, const BatchLoader& loader) {
               run_steps(trainer, loader, 0, 4);
               EXPECT_EQ(trainer.exchanged_bytes(), predicted) << name_of(updates);
             });
  }
}

// Bytes that a rank's exchanges carry in four steps, which `inner_steps` divides.
double predicted_bytes(const Plan& plan) {
  const Program program = lower(small_llama(), plan, load_stack("shardwright"));
  double predicted = 0.0;
  for (const Call& call : program.stages[0].calls) {
    for (const Op& op : program.blocks[call.block].ops) {
      const bool exchanges =
          op.payload == Payload::CompressedGradients || op.payload == Payload::LocalSteps;
      if (exchanges && is_communication(op.kind))
        predicted += std::get<CommunicationWork>(op.work).bytes.value() * 4.0 /
                     static_cast<double>(op.every);
    }
  }
  return predicted;
}

double carried_bytes(const Plan& plan) {
  std::atomic<double> carried = 0.0;
  on_ranks(small_llama(), plan, a_few_steps(),
           [&](RankTrainer& trainer, const BatchLoader& loader) {
             run_steps(trainer, loader, 0, 4);
             if (trainer.rank() == 0) carried = trainer.exchanged_bytes();
           });
  return carried;
}

// What an exchange carries is what its ops say, and so what the simulator prices.
TEST(Compression, CarriesThePredictedBytes) {
  for (const ReplicaCompression form : {Bf16, Int8, Fp8, Fp4, OneBit, TopK, PowerSgd}) {
    for (const ReplicaSync sync : {kEachStep, kLocally}) {
      Plan plan = agreeing(sync, form);
      plan.replicas.inner_steps = plan.replicas.local() ? 2 : 1;
      EXPECT_EQ(carried_bytes(plan), predicted_bytes(plan))
          << name_of(form) << " " << name_of(sync);
    }
  }
}

// Without compression fragments carry together what one exchange of everything does.
TEST(StreamingDiLoCo, CarriesThePredictedBytes) {
  const double whole = predicted_bytes(streaming(4, 1, 0));
  for (const std::int64_t fragments : {1, 2, 4}) {
    const Plan plain = streaming(4, fragments, 1);
    EXPECT_EQ(carried_bytes(plain), whole);
    EXPECT_EQ(predicted_bytes(plain), whole);
    Plan coded = plain;
    coded.replicas.compression = Fp4;
    EXPECT_EQ(carried_bytes(coded), predicted_bytes(coded));
    EXPECT_LT(predicted_bytes(coded), 0.5 * whole);
  }
  Plan stages = streaming(4, 2, 1);
  stages.pp = 2;
  Plan groups = streaming(4, 2, 1);
  groups.dp = 4;
  groups.zero_stage = 3;
  groups.shard_group = 2;
  for (const Plan& plan : {stages, groups})
    EXPECT_EQ(carried_bytes(plan), predicted_bytes(plan)) << plan.pp;
}

TEST(Compression, RefusesWhatItWouldLose) {
  Plan plan = agreeing(kLocally, None);
  EXPECT_EQ(problems_of([&] { check_checkpoints(plan, true); }).size(), 1U);
  EXPECT_TRUE(problems_of([&] { check_checkpoints(plan, false); }).empty());
  plan.precision = Precision::Bf16;
  const auto on_gpu = problems_of(
      [&] { check_executable(small_llama(), plan, load_stack("shardwright"), true, "plan.json"); });
  EXPECT_NE(std::find(on_gpu.begin(), on_gpu.end(), "/plan/data_parallel"), on_gpu.end());
}

}  // namespace
}  // namespace shardwright::executor
