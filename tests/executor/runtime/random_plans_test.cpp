// Random plans of all kinds that run on CPUs give the losses and the weights of one rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/program/executable.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/plan_json.hpp"
#include "executor/checkpoint/parameter_files.hpp"
#include "tests/executor/runtime/training_fixture.hpp"
#include "tests/sanitized.hpp"

namespace shardwright::executor {
namespace {

constexpr int kPlans = kSanitized ? 6 : 60;
constexpr std::int64_t kMostRanks = 8;

// With a small epsilon the optimizer makes steps of rounding errors where a gradient is zero, as
// that of a key's bias is.
TrainingOptions few_steps(bool clips) {
  TrainingOptions options{.steps = 3, .learning_rate = 3e-3, .warmup_steps = 0, .epsilon = 1e-3};
  // A limit on their norm hides that gradients are a multiple of the right ones.
  if (!clips) options.clip_norm = 0.0;
  return options;
}

class PlanGenerator {
 public:
  explicit PlanGenerator(std::uint64_t seed) : random_(seed) {}

  // Any plan for several ranks that the executor runs.
  Plan next(const ModelSpec& model) {
    while (true) {
      const Plan plan = any(model);
      const std::int64_t ranks = plan.world_size();
      if (ranks > 1 && ranks <= kMostRanks && runs(model, plan)) return plan;
    }
  }
  std::size_t below(std::size_t count) { return random_() % count; }

 private:
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }
  bool flag() { return below(2) == 0; }

  static bool runs(const ModelSpec& model, const Plan& plan) {
    if (!broken_rules(model, nullptr, plan).empty()) return false;
    try {
      check_executable(model, plan, load_stack("shardwright"), false, "");
    } catch (const InputError&) {
      return false;
    }
    return true;
  }

  Plan any(const ModelSpec& model) {
    Plan plan = one_rank_plan();
    plan.seq_len = 48;
    plan.dp = one_of<std::int64_t>({1, 1, 2, 4});
    plan.tp = one_of<std::int64_t>({1, 1, 2, 4});
    plan.pp = one_of<std::int64_t>({1, 1, 2, 4});
    plan.cp = one_of<std::int64_t>({1, 2, 3, 4});
    plan.schedule =
        one_of({ScheduleKind::GPipe, ScheduleKind::OneFOneB, ScheduleKind::Interleaved,
                ScheduleKind::ZbH1, ScheduleKind::ZbH2, ScheduleKind::ZbV, ScheduleKind::DualPipe});
    const bool two_chunks =
        plan.schedule == ScheduleKind::Interleaved || plan.schedule == ScheduleKind::ZbV;
    plan.vpp = two_chunks ? 2 : 1;
    plan.context_parallel = one_of(
        {ContextParallelKind::Ring, ContextParallelKind::AllGather, ContextParallelKind::Ulysses});
    plan.zero_stage = static_cast<int>(below(4));
    if (plan.zero_stage > 0 && flag()) plan.shard_group = one_of<std::int64_t>({1, 2});
    plan.micro_batch = one_of<std::int64_t>({1, 2, 4});
    plan.sequence_parallel = model.moe.has_value() || flag();
    plan.overlap.grad_reduce = flag();
    plan.overlap.param_gather = flag();
    plan.overlap.p2p = flag();
    plan.recompute =
        one_of({RecomputePolicy::None, RecomputePolicy::Selective, RecomputePolicy::Full});
    if (plan.recompute == RecomputePolicy::Full && flag())
      (flag() ? plan.recompute_interval : plan.recompute_group) = 2;
    if (plan.recompute == RecomputePolicy::Selective) {
      for (const RecomputeModule module :
           {RecomputeModule::CoreAttention, RecomputeModule::LayerNorm, RecomputeModule::Mlp,
            RecomputeModule::MlpActivation, RecomputeModule::Moe, RecomputeModule::MoeActivation,
            RecomputeModule::SharedExperts, RecomputeModule::MlaUpProjection})
        if (flag()) plan.recompute_modules.insert(module);
    }
    if (model.moe) {
      plan.ep = one_of<std::int64_t>({1, 2, 4});
      plan.expert_tp = one_of<std::int64_t>({1, 2});
    }
    plan.offload_activations = below(3) == 0;
    if (plan.offload_activations && flag()) plan.offload_ratio = 0.5;
    return plan;
  }

  std::mt19937_64 random_;
};

struct Outcome {
  std::vector<double> losses;
  // The weights of each parameter, by name.
  std::map<std::string, std::vector<float>> weights;
};

// Copies what a rank updates into whole parameters.
void collect(const std::vector<ParameterPiece>& pieces, Outcome& outcome) {
  for (const ParameterPiece& piece : pieces) {
    const ParameterSlice& slice = piece.slice;
    std::vector<float>& whole = outcome.weights[slice.name];
    const std::int64_t width = slice.whole_columns();
    whole.resize(static_cast<std::size_t>(slice.shape.front() * width));
    for (std::size_t i = piece.range.begin; i < piece.range.end; ++i) {
      const auto index = static_cast<std::int64_t>(i - slice.offset);
      const std::int64_t row = index / slice.columns, column = index % slice.columns;
      if (row >= slice.rows) continue;
      const std::int64_t place = (slice.first_row + row) * width + slice.first_column + column;
      whole[static_cast<std::size_t>(place)] = piece.values.front()[i - piece.range.begin];
    }
  }
}

Outcome outcome_of(const ModelSpec& model, const Plan& plan, const TrainingOptions& options) {
  Outcome outcome;
  std::mutex mutex;
  on_ranks(model, plan, options, [&](RankTrainer& trainer, const BatchLoader& loader) {
    std::vector<double> losses = run_steps(trainer, loader, 0, options.steps);
    std::vector<ParameterPiece> pieces;
    copy_parameters(trainer.parameters(), pieces);
    const std::lock_guard lock(mutex);
    if (trainer.rank() == 0) outcome.losses = std::move(losses);
    collect(pieces, outcome);
  });
  return outcome;
}

class RandomPlan : public testing::TestWithParam<int> {};

TEST_P(RandomPlan, TrainsAsOneRankDoes) {
  PlanGenerator generator(static_cast<std::uint64_t>(GetParam()));
  const std::vector<ModelSpec> models = {small_llama(),       small_gpt2(),       small_qwen2(),
                                         small_qwen3(),       small_mixtral(),    small_qwen2_moe(),
                                         small_deepseek_v2(), small_deepseek_v3()};
  const ModelSpec& model = models[generator.below(models.size())];
  const Plan plan = generator.next(model);
  SCOPED_TRACE(model.name + ": " + to_json(plan).dump());
  Plan alone = one_rank_plan();
  alone.seq_len = plan.seq_len;
  const TrainingOptions options = few_steps(generator.below(2) == 0);
  const Outcome expected = outcome_of(model, alone, options);
  const Outcome found = outcome_of(model, plan, options);
  ASSERT_EQ(found.losses.size(), expected.losses.size());
  for (std::size_t step = 0; step < found.losses.size(); ++step)
    EXPECT_NEAR(found.losses[step] / expected.losses[step], 1.0, 1e-5) << "step " << step;
  ASSERT_EQ(found.weights.size(), parameter_tensors(model).size());
  double worst = 0.0;
  for (const auto& [name, weights] : expected.weights) {
    const std::vector<float>& others = found.weights.at(name);
    ASSERT_EQ(others.size(), weights.size()) << name;
    for (std::size_t i = 0; i < weights.size(); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(others[i] - weights[i])));
  }
  // The steps add up to about the learning rate times their number: 0.01.
  EXPECT_LE(worst, 1e-6);
  RecordProperty("worst_difference_of_a_weight", std::to_string(worst));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPlan, testing::Range(0, kPlans));

}  // namespace
}  // namespace shardwright::executor
