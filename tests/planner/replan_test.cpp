#include "planner/replan.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/spec/plan_check.hpp"
#include "tests/planner/shipped_requests.hpp"

namespace shardwright::planner {
namespace {

Scenario run_of_16_ranks() {
  Plan plan;
  plan.dp = 8;
  plan.tp = 2;
  plan.global_batch = 64;
  plan.seq_len = 1024;
  return scenario_of("llama3.2-1b", "shardwright", plan);
}

// Whatever number is left: the plan needs no more, trains the same steps, keeps all rules, and is
// one that the executor runs.
TEST(Replan, FindsAPlanOfTheSameStepsForAnyNumberOfRanks) {
  const Scenario before = run_of_16_ranks();
  std::int64_t fewer = 0;
  for (const std::int64_t left : {1, 2, 3, 5, 7, 12, 15, 24}) {
    const auto found = replan(before, left);
    ASSERT_TRUE(found) << left;
    const Plan& plan = found->scenario.plan;
    EXPECT_LE(plan.world_size(), left);
    EXPECT_GE(plan.world_size(), fewer) << "more ranks never give a smaller run";
    fewer = plan.world_size();
    EXPECT_EQ(plan.global_batch, before.plan.global_batch);
    EXPECT_EQ(plan.seq_len, before.plan.seq_len);
    EXPECT_EQ(plan.precision, before.plan.precision);
    EXPECT_EQ(found->scenario.model, before.model);
    EXPECT_LE(plan.zero_stage, 1);
    EXPECT_EQ(plan.cp, 1);
    EXPECT_LE(plan.tp, before.model.attention.heads);
    EXPECT_EQ(plan.recompute_layers, 0);
    // Readable as a plan file, so it keeps the rules.
    EXPECT_EQ(read_scenario(to_json(found->scenario), "replanned"), found->scenario);
  }
}

TEST(Replan, NeedsARank) {
  EXPECT_THROW(replan(run_of_16_ranks(), 0), InputError);
}

TEST(Replan, FindsNothingWhereNothingFits) {
  Scenario scenario = run_of_16_ranks();
  scenario.cluster.accelerator.memory = Bytes(1e9);
  EXPECT_FALSE(replan(scenario, 2));
}

}  // namespace
}  // namespace shardwright::planner
