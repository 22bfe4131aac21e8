// The noise scale of gradients with known noise.
#include "executor/telemetry/noise_scale.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "tests/executor/runtime/training_fixture.hpp"

namespace shardwright::executor {
namespace {

// Gradients of examples are (1, 1, …) plus normal noise of variance v: tr(S) / |G|^2 = v.
TEST(NoiseScale, FindsTheNoiseOfNormalGradients) {
  constexpr int kDimensions = 200, kSmall = 8, kParts = 4, kSteps = 400;
  constexpr double kVariance = 25.0;
  std::mt19937_64 random(7);
  std::normal_distribution<double> part_noise(0.0, std::sqrt(kVariance / kSmall));
  NoiseScale scale(kSmall, kSmall * kParts);
  for (int step = 0; step < kSteps; ++step) {
    double small_squares = 0.0, large_squares = 0.0;
    for (int i = 0; i < kDimensions; ++i) {
      double sum = 0.0;
      for (int part = 0; part < kParts; ++part) {
        const double gradient = 1.0 + part_noise(random);
        small_squares += gradient * gradient / kParts;
        sum += gradient;
      }
      large_squares += sum * sum / (kParts * kParts);
    }
    scale.add(small_squares, large_squares);
  }
  ASSERT_TRUE(scale.value());
  EXPECT_NEAR(*scale.value(), kVariance, 0.15 * kVariance);
}

TEST(NoiseScale, IsUnknownWithoutStepsOrSignal) {
  NoiseScale scale(1.0, 4.0);
  EXPECT_FALSE(scale.value());
  // Less than a quarter: noise hides the gradient.
  scale.add(1.0, 0.1);
  EXPECT_FALSE(scale.value());
}

// The mean of the parts' squared norms is at least the squared norm of their mean (Jensen), and
// equal only if all parts agree.
TEST(NoiseScale, PartsOfABatchDisagree) {
  Plan plan = two_replicas();
  plan.zero_stage = 1;
  on_ranks(small_llama(), plan, {.steps = 1}, [&](RankTrainer& trainer, const BatchLoader& loader) {
    const StepReport report = trainer.step(0, loader.load(0, trainer.place()[Axis::Data]));
    ASSERT_TRUE(report.small_batch_squares);
    const double large = report.gradient_norm * report.gradient_norm;
    EXPECT_GT(*report.small_batch_squares, large);
    EXPECT_LT(*report.small_batch_squares, 4.0 * large);
    EXPECT_GT(report.phases.forward_s, 0.0);
    EXPECT_GT(report.phases.backward_s, 0.0);
    EXPECT_GT(report.phases.communication_s, 0.0);
  });
}

struct Squares {
  std::optional<double> small;
  double large = 0.0;
};

Squares squares_of(const ModelSpec& model, const Plan& plan) {
  Squares squares;
  on_ranks(model, plan, {.steps = 1}, [&](RankTrainer& trainer, const BatchLoader& loader) {
    const StepReport report = trainer.step(0, loader.load(0, trainer.place()[Axis::Data]));
    if (trainer.rank() != 0) return;
    squares = {report.small_batch_squares, report.gradient_norm * report.gradient_norm};
  });
  return squares;
}

// The split of a replica over ranks changes only the order of fp32 sums. (The squares of a norm
// gradient's addends on tensor-parallel ranks do not add up.)
TEST(NoiseScale, IsThatOfDataParallelismUnderEveryPlan) {
  const std::vector<PlanCase> cases = {
      {"tp2", small_gpt2, [](Plan& p) { p.tp = 2; }},
      {"tp2_llama", small_llama, [](Plan& p) { p.tp = 2; }},
      {"tp2_without_sp", small_gpt2, [](Plan& p) { p.tp = 2, p.sequence_parallel = false; }},
      {"tp4_zero1", small_gpt2, [](Plan& p) { p.tp = 4, p.zero_stage = 1; }},
      {"tp4_shares_2_kv_heads", small_llama, [](Plan& p) { p.tp = 4; }},
      {"tp4_shares_a_kv_head_zero1", small_qwen2, [](Plan& p) { p.tp = 4, p.zero_stage = 1; }},
      {"pp2", small_llama, [](Plan& p) { p.pp = 2; }},
      {"tp2_pp2_zero1", small_llama, [](Plan& p) { p.tp = p.pp = 2, p.zero_stage = 1; }}};
  for (const PlanCase& each : cases) {
    const ModelSpec model = each.model();
    const Squares expected = squares_of(model, two_replicas());
    Plan plan = two_replicas();
    each.change(plan);
    const Squares found = squares_of(model, plan);
    ASSERT_TRUE(expected.small && found.small) << each.name;
    EXPECT_NEAR(*found.small / *expected.small, 1.0, 1e-5) << each.name;
    EXPECT_NEAR(found.large / expected.large, 1.0, 1e-5) << each.name;
  }
}

// The stages have only addends of the embedding's gradient, so there is no figure.
TEST(NoiseScale, IsUnknownWhereTwoStagesHoldATiedEmbedding) {
  Plan plan = two_replicas();
  plan.pp = 2;
  EXPECT_FALSE(squares_of(small_gpt2(), plan).small);
}

}  // namespace
}  // namespace shardwright::executor
