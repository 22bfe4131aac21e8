// Two traces beside each other: laws of the differences, and a GPT before and after its gradients
// were reduced beside the backward pass.
#include "calibration/traces/trace_change.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "calibration/traces/device_steps.hpp"
#include "calibration/traces/trace_file.hpp"
#include "calibration/traces/trace_report.hpp"

namespace shardwright::calibration {
namespace {

using testing::IsEmpty;

Trace nanogpt_trace(const std::string& name) {
  return std::get<Trace>(read_recording(
      SHARDWRIGHT_SOURCE_DIR "/tests/calibration/traces/files/nanogpt/" + name + ".json.gz"));
}

Seconds kernel_time_of_step(const Trace& trace) {
  Seconds sum;
  const auto steps = device_steps(trace);
  for (const DeviceStep& step : steps)
    for (const DeviceActivity* each : step.activities) sum += from_ns(each->duration);
  return sum / static_cast<double>(steps.size());
}

TEST(TraceChange, ATraceDiffersInNothingFromItself) {
  const Trace trace = nanogpt_trace("rank0");
  const auto change = change_between(trace, trace);
  ASSERT_TRUE(change);
  EXPECT_THAT(change->differences, IsEmpty());
  EXPECT_EQ(change->first.step, change->second.step);
}

TEST(TraceChange, TheOtherWayRoundHasTheOppositeSigns) {
  const Trace first = nanogpt_trace("before"), second = nanogpt_trace("after");
  const auto there = change_between(first, second), back = change_between(second, first);
  ASSERT_TRUE(there && back);
  ASSERT_EQ(there->differences.size(), back->differences.size());
  EXPECT_FALSE(there->differences.empty());
  for (std::size_t i = 0; i < there->differences.size(); ++i) {
    EXPECT_EQ(there->differences[i].about, back->differences[i].about);
    EXPECT_EQ(there->differences[i].difference(), -back->differences[i].difference());
  }
}

// What that change was made for.
TEST(TraceChange, ReductionsBesideTheBackwardPassAreHidden) {
  const auto change = change_between(nanogpt_trace("before"), nanogpt_trace("after"));
  ASSERT_TRUE(change);
  EXPECT_LT(change->second.step, change->first.step);
  EXPECT_LT(change->second.exposed, change->first.exposed);
  const auto hidden = std::find_if(
      change->differences.begin(), change->differences.end(),
      [](const auto& each) { return each.cause == DifferenceCause::HiddenCollective; });
  EXPECT_NE(hidden, change->differences.end());
}

// No kernel is lost between the groups.
TEST(TraceChange, TheKernelsAddUpToThoseOfTheSteps) {
  const Trace first = nanogpt_trace("before"), second = nanogpt_trace("after");
  const auto change = change_between(first, second);
  ASSERT_TRUE(change);
  Seconds before, after;
  for (const KernelChange& each : change->kernels) {
    before += each.first;
    after += each.second;
  }
  EXPECT_NEAR(before / kernel_time_of_step(first), 1.0, 1e-9);
  EXPECT_NEAR(after / kernel_time_of_step(second), 1.0, 1e-9);
}

}  // namespace
}  // namespace shardwright::calibration
