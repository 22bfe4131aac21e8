#include "sim/step/straggler_draws.hpp"

#include <gtest/gtest.h>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/step/fidelity.hpp"

namespace shardwright::sim {
namespace {

Scenario two_nodes() {
  Plan plan;
  plan.dp = 4;
  plan.tp = 2;
  plan.pp = 2;
  plan.global_batch = 16;
  plan.seq_len = 2048;
  // Collectives, which no slow rank makes longer, take as long as in a benchmark.
  StackSpec stack = load_stack("megatron-core");
  stack.communication.collective_ratio = 1.0;
  return {load_model("llama3-8b"), load_cluster("dgx-h100"), stack, plan};
}

StragglerDraws draws_of(const FullOptions& full, const DrawOptions& options) {
  const Scenario scenario = two_nodes();
  return draw_stragglers(scenario, lower_and_price(scenario), full, options);
}

// One slow rank without any chance: another node in its place is all that it takes.
TEST(StragglerDraws, ReplacingTheOnlySlowNodeGivesTheUniformStep) {
  FullOptions full;
  full.variation.rank_slowdown.assign(16, 1.0);
  full.variation.rank_slowdown[5] = 1.3;
  const StragglerDraws draws = draws_of(full, {.draws = 3});
  ASSERT_EQ(draws.steps.size(), 3U);
  EXPECT_EQ(draws.quantile(0.0), draws.quantile(1.0));
  EXPECT_GT(draws.mean(), 1.1 * draws.uniform_step);
  EXPECT_NEAR(draws.gain_of_replacing, 1.0 - draws.uniform_step / draws.mean(), 1e-9);
}

// Each draw is the full replay with its seed.
TEST(StragglerDraws, AreFullReplaysOfSeveralSeeds) {
  const Scenario scenario = two_nodes();
  FullOptions full;
  full.variation.rank_jitter = 0.05;
  full.variation.op_jitter = 0.1;
  full.variation.seed = 7;
  full.contention = true;
  std::vector<Seconds> expected;
  for (int draw = 0; draw < 4; ++draw, ++full.variation.seed)
    expected.push_back(simulate_at(scenario, Fidelity::Full, full).result.step);
  full.variation.seed = 7;
  const StragglerDraws draws =
      draw_stragglers(scenario, lower_and_price(scenario), full, {.draws = 4});
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(draws.steps, expected);
}

TEST(StragglerDraws, MoreVariationNeverShortensTheTail) {
  FullOptions full;
  Seconds before;
  for (const double jitter : {0.01, 0.03, 0.1}) {
    full.variation.rank_jitter = jitter;
    const StragglerDraws draws = draws_of(full, {.draws = 20});
    EXPECT_GT(draws.quantile(0.95), before);
    EXPECT_GE(draws.quantile(0.95), draws.quantile(0.5));
    EXPECT_GT(draws.gain_of_replacing, 0.0);
    before = draws.quantile(0.95);
  }
  // All NICs at a hundredth of their bandwidth in every draw are a step without chance. Only
  // messages between the stages cross nodes.
  FullOptions none;
  const StragglerDraws degraded =
      draws_of(none, {.draws = 2, .degraded_nics = 1.0, .degraded_bandwidth = 0.01});
  EXPECT_EQ(degraded.steps[0], degraded.steps[1]);
  EXPECT_GT(degraded.steps[0], degraded.uniform_step);
}

// All GPUs at half of their speed take twice as long for what they compute; one in a hundred is
// enough to hold up a step in which all wait for each other.
TEST(StragglerDraws, ThrottledGpusHoldUpTheStep) {
  const FullOptions none;
  const StragglerDraws all =
      draws_of(none, {.draws = 2, .throttled_ranks = 1.0, .throttled_speed = 0.5});
  EXPECT_EQ(all.steps[0], all.steps[1]);
  EXPECT_GT(all.steps[0], 1.6 * all.uniform_step);
  EXPECT_LE(all.steps[0], 2.0 * all.uniform_step * (1.0 + 1e-9));
  Seconds before;
  for (const double share : {0.0, 0.02, 0.1}) {
    const StragglerDraws some =
        draws_of(none, {.draws = 20, .throttled_ranks = share, .throttled_speed = 0.5});
    EXPECT_GE(some.mean(), before) << share;
    EXPECT_LE(some.quantile(1.0), all.steps[0] * (1.0 + 1e-9));
    before = some.mean();
  }
  EXPECT_GT(before, all.uniform_step);
}

}  // namespace
}  // namespace shardwright::sim
