#include "core/spec/stack_support.hpp"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

TEST(StackSupport, NamesWhatTheProfileDoesNotList) {
  StackSpec stack;
  stack.name = "s";
  Plan plan;
  plan.pp = 4;
  plan.schedule = ScheduleKind::ZbH1;
  plan.zero_stage = 3;
  EXPECT_TRUE(unsupported_by(stack, plan).empty());  // an empty list is all of them
  stack.schedules = {ScheduleKind::OneFOneB, ScheduleKind::Interleaved};
  stack.zero_stages = {0, 1};
  const auto sentences = unsupported_by(stack, plan);
  ASSERT_EQ(sentences.size(), 2U);
  EXPECT_EQ(sentences[0], "s does not run the schedule zb-h1 (it runs 1f1b, interleaved)");
  EXPECT_EQ(sentences[1], "s does not run ZeRO stage 3 (it runs 0, 1)");
  plan.zero_stage = 1;
  plan.pp = 1;  // nothing to schedule
  EXPECT_TRUE(unsupported_by(stack, plan).empty());
}

}  // namespace
}  // namespace shardwright
