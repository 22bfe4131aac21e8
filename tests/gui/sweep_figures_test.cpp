#include "gui/models/sweep_figures.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/spec/profile_library.hpp"
#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"
#include "planner/wording.hpp"
#include "tests/gui/small_scenario.hpp"

namespace shardwright::gui {
namespace {

using planner::Sweep;
using planner::SweepAxis;
using planner::SweepPlan;

Sweep chosen_plan_along(SweepAxis axis) {
  return planner::run_sweep(
      {axis, SweepPlan::Chosen, {}, small_request(), small_set()->scenario(0)});
}

TEST(SweepFigures, NameTheAcceleratorsOfTheCluster) {
  EXPECT_EQ(title_of(SweepFigure::TokensPerSecondPerGpu, "TPU"), u"Tokens/s per TPU"_s);
  EXPECT_EQ(title_of(SweepAxis::Gpus, "accelerator"), u"Accelerators"_s);
  EXPECT_EQ(title_of(SweepAxis::Gpus, "CPU rank"), u"CPU ranks"_s);
  EXPECT_EQ(tip_of(SweepAxis::Gpus, SweepPlan::Best, "TPU"),
            u"Each point is the best plan for its number of TPUs."_s);
  EXPECT_EQ(with_accelerator(u"GPU-hours"_s, "CPU rank"), u"CPU-rank-hours"_s);
}

TEST(SweepFigures, TheIntervalHoldsThePrediction) {
  for (const SweepFigure figure : enumerators<SweepFigure>()) {
    const SweepValue value =
        value_of(figure, small_set()->plans.front(), validation::PredictionClass());
    EXPECT_LE(value.low, value.value) << qPrintable(title_of(figure));
    EXPECT_GE(value.high, value.value) << qPrintable(title_of(figure));
  }
}

// The errors of a family of stacks say less about one of its members.
TEST(SweepFigures, TheIntervalIsWiderOnAGenericStack) {
  const planner::PlanCandidate& best = small_set()->plans.front();
  Scenario scenario = small_set()->scenario(0);
  const auto width = [&](const char* stack) {
    scenario.stack = load_stack(stack);
    const SweepValue value = value_of(SweepFigure::Step, best, validation::class_of(scenario));
    return value.high - value.low;
  };
  EXPECT_GT(width("generic-megatron"), width("megatron-core"));
  EXPECT_EQ(width("shardwright"), 0.0);  // No published step ran on it.
}

// A band around a figure whose error nobody measured would be made up.
TEST(SweepFigures, OnlyFiguresThatDependOnTheStepTimeHaveAnInterval) {
  for (const SweepFigure figure : enumerators<SweepFigure>()) {
    const SweepValue value =
        value_of(figure, small_set()->plans.front(), validation::PredictionClass());
    EXPECT_EQ(value.high > value.low, has_interval(figure) && value.value > 0.0)
        << qPrintable(title_of(figure));
  }
  EXPECT_FALSE(has_interval(SweepFigure::Memory));
  EXPECT_FALSE(knee_is_of(SweepAxis::GlobalBatch, SweepFigure::Memory));
  EXPECT_TRUE(knee_is_of(SweepAxis::SeqLen, SweepFigure::Memory));
}

TEST(SweepFigures, EveryAxisSaysItsKneeOrWhyThereIsNone) {
  for (const SweepAxis axis : enumerators<SweepAxis>()) {
    const Sweep along = chosen_plan_along(axis);
    const QString text = to_qstring(planner::knee_text(along, small_request().cluster));
    EXPECT_TRUE(text.endsWith(u'.')) << qPrintable(text);
    EXPECT_FALSE(text.contains(u'%' + QString::number(1))) << qPrintable(text);
    if (along.knee) {
      EXPECT_TRUE(text.contains(axis_text(along.axis, along.points[*along.knee].value)));
    }
    // The knee at the smallest value may lie below it.
    const bool is_open = along.knee == std::optional<std::size_t>(0) &&
                         along.axis != SweepAxis::Gpus && along.axis != SweepAxis::SeqLen;
    EXPECT_EQ(text.contains(u" or fewer"_s) || text.contains(u" or less"_s), is_open);
    // The line that is drawn at first is that of a GPU, which falls.
    if (along.axis == SweepAxis::Gpus) {
      EXPECT_TRUE(text.contains(u"of the whole cluster"_s) ||
                  text.contains(u"the whole cluster's"_s));
    }
  }
}

TEST(SweepFigures, BandwidthsAreDrawnInGigabytesPerSecond) {
  EXPECT_EQ(axis_value(SweepAxis::MemoryBandwidth, 3.35e12), 3350.0);
  EXPECT_EQ(axis_text(SweepAxis::ScaleOutBandwidth, 6.25e9), u"6.25"_s);
  EXPECT_EQ(axis_text(SweepAxis::Gpus, 512.0), u"512"_s);
}

// The ends are swept, the values rise, and each is one that a plan can have.
TEST(SweepFigures, ARangeIsSweptInPossibleValues) {
  using planner::SweepAxis;
  const auto values = [](SweepAxis axis, double from, double to, int points) {
    return swept_values(axis, {from, to, points}, 8, 24);
  };
  EXPECT_EQ(values(SweepAxis::Gpus, 2, 128, 7), (std::vector<double>{2, 4, 8, 16, 32, 64, 128}));
  EXPECT_EQ(values(SweepAxis::Gpus, 100, 200, 2), (std::vector<double>{104, 200}));
  for (const double batch : values(SweepAxis::GlobalBatch, 30, 1000, 9))
    EXPECT_EQ(std::fmod(batch, 24.0), 0.0);
  EXPECT_EQ(values(SweepAxis::SeqLen, 100, 140, 24), (std::vector<double>{128}));
  const auto bandwidths = values(SweepAxis::ScaleOutBandwidth, 25, 100, 3);
  ASSERT_EQ(bandwidths.size(), 3U);
  EXPECT_NEAR(bandwidths[1], 50e9, 1.0);
}

}  // namespace
}  // namespace shardwright::gui
