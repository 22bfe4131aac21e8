#include "planner/compare.hpp"

#include <gtest/gtest.h>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"

namespace shardwright::planner {
namespace {

Scenario llama(std::int64_t dp, std::int64_t global_batch) {
  Scenario scenario;
  scenario.model = load_model("llama3-8b");
  scenario.cluster = load_cluster("dgx-h100");
  scenario.stack = load_stack("megatron-core");
  scenario.plan.dp = dp;
  scenario.plan.tp = 2;
  scenario.plan.global_batch = global_batch;
  scenario.plan.seq_len = 8192;
  return scenario;
}

bool mentions(const Comparison& comparison, const std::string& text) {
  return comparison.verdict.find(text) != std::string::npos;
}

TEST(Compare, JudgesByTheStepWhereBothTrainTheSame) {
  const Comparison comparison = compare(llama(4, 32), llama(4, 32));
  EXPECT_EQ(comparison.yardstick, Yardstick::Step);
  EXPECT_EQ(comparison.verdict, "both take the same time");
}

// The larger batch takes the longer step, and trains more tokens in a second.
TEST(Compare, JudgesByTokensPerSecondWhereBatchesDiffer) {
  const Comparison comparison = compare(llama(4, 8), llama(4, 128));
  EXPECT_GT(comparison.second.step, comparison.first.step);
  EXPECT_EQ(comparison.yardstick, Yardstick::TokensPerSecond);
  EXPECT_TRUE(mentions(comparison, "the second trains")) << comparison.verdict;
  EXPECT_TRUE(mentions(comparison, "do not compare")) << comparison.verdict;
}

// Twice the machine on the same batch: the shorter step, but less from each accelerator.
TEST(Compare, JudgesByTheAcceleratorWhereMachinesDiffer) {
  const Comparison comparison = compare(llama(4, 32), llama(32, 32));
  EXPECT_LT(comparison.second.step, comparison.first.step);
  EXPECT_EQ(comparison.yardstick, Yardstick::TokensPerSecondPerAccelerator);
  EXPECT_TRUE(mentions(comparison, "per accelerator the first")) << comparison.verdict;
  EXPECT_TRUE(mentions(comparison, "8 and 64 accelerators")) << comparison.verdict;
}

}  // namespace
}  // namespace shardwright::planner
