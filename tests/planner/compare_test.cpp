#include "planner/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/wording.hpp"
#include "tests/planner/shipped_requests.hpp"

namespace shardwright::planner {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Scenario llama(std::int64_t dp, std::int64_t global_batch) {
  Plan plan;
  plan.dp = dp;
  plan.tp = 2;
  plan.global_batch = global_batch;
  plan.seq_len = 8192;
  return scenario_of("llama3-8b", "megatron-core", plan);
}

std::string verdict_on(const Comparison& comparison) {
  return verdict_text(comparison, "A", "B");
}

TEST(Compare, JudgesByTheStepWhereBothTrainTheSame) {
  const Comparison comparison = compare(llama(4, 32), llama(4, 32));
  EXPECT_EQ(comparison.yardstick, Yardstick::Step);
  EXPECT_EQ(verdict_on(comparison), "A and B take the same time.");
}

// The larger batch takes the longer step, and trains more tokens in a second.
TEST(Compare, JudgesByTokensPerSecondWhereBatchesDiffer) {
  const Comparison comparison = compare(llama(4, 8), llama(4, 128));
  EXPECT_GT(comparison.second.step, comparison.first.step);
  EXPECT_EQ(comparison.yardstick, Yardstick::TokensPerSecond);
  EXPECT_THAT(verdict_on(comparison), StartsWith("B trains "));
  EXPECT_THAT(verdict_on(comparison), HasSubstr("step times do not compare"));
}

// Twice the machine on the same batch: the shorter step, but less from each accelerator.
TEST(Compare, JudgesByTheAcceleratorWhereMachinesDiffer) {
  const Comparison comparison = compare(llama(4, 32), llama(32, 32));
  EXPECT_LT(comparison.second.step, comparison.first.step);
  EXPECT_EQ(comparison.yardstick, Yardstick::TokensPerSecondPerAccelerator);
  EXPECT_THAT(verdict_on(comparison), StartsWith("Per accelerator, A trains "));
  EXPECT_THAT(verdict_on(comparison), HasSubstr("8 and 64 accelerators"));
}

TEST(Compare, NamesInputsWithTheUnitsOfTheirValues) {
  const Scenario first = llama(4, 32);
  Scenario second = first;
  second.cluster.node.nic.bandwidth = gigabytes_per_second(25.0);
  const Comparison comparison = compare(first, second);
  ASSERT_EQ(comparison.inputs.size(), 1U);
  const InputDifference& input = comparison.inputs.front();
  EXPECT_EQ(input.pointer(), "/cluster/node/nic/bandwidth_bytes_per_s");
  EXPECT_EQ(field_text(input), "cluster, node, nic, bandwidth");
  EXPECT_EQ(input.first.text, "50 GB/s");
  EXPECT_EQ(input.second.text, "25 GB/s");
}

// Every part of the time is compared, so that their changes are the change of the step.
TEST(Compare, NamesCopiesToTheHostAsTheDifferenceOfAnOffloadedPlan) {
  Scenario kept = llama(8, 32);
  kept.plan.tp = 1;
  kept.plan.seq_len = 2048;
  Scenario offloaded = kept;
  offloaded.plan.offload_activations = true;
  const Comparison comparison = compare(kept, offloaded);
  ASSERT_TRUE(comparison.largest_change);
  EXPECT_EQ(comparison.largest_change->part, sim::StepPart::Offload);
  EXPECT_THAT(verdict_on(comparison), HasSubstr("The largest difference is in copies to the host"));
  double parts = 0.0;
  for (const ResultDifference& each : comparison.results)
    if (std::holds_alternative<sim::StepPart>(each.figure)) parts += each.change();
  EXPECT_EQ(comparison.results.front().figure, Figure(StepFigure::Step));
  EXPECT_NEAR(parts, comparison.results.front().change(), 1e-6 * comparison.first.step.value());
}

}  // namespace
}  // namespace shardwright::planner
