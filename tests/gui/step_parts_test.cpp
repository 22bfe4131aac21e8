#include "gui/models/step_parts.hpp"

#include <gtest/gtest.h>

#include "tests/gui/small_scenario.hpp"

namespace shardwright::gui {
namespace {

TEST(StepParts, ThePartsOfTheTimeAddUpToTheStep) {
  for (const planner::PlanCandidate& candidate : small_set()->plans) {
    Seconds sum;
    for (const TimePart& part : time_parts(candidate.result.time())) sum += part.time;
    EXPECT_NEAR(sum.value(), candidate.result.step.value(), 1e-6 * candidate.result.step.value());
  }
}

TEST(StepParts, TheMomentOfThePeakIsNamed) {
  EXPECT_EQ(peak_moment_text({"attention.qkv", Phase::BackwardInput, 3, 5}),
            u"while attention.qkv runs (backward input, layer 3, microbatch 5)"_s);
  EXPECT_EQ(peak_moment_text({"optimizer", Phase::Optimizer, -1, -1}),
            u"while optimizer runs (optimizer)"_s);
}

}  // namespace
}  // namespace shardwright::gui
