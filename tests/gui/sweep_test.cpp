#include "gui/models/sweep.hpp"

#include <gtest/gtest.h>

#include "core/spec/profile_library.hpp"
#include "gui/models/plan_search.hpp"
#include "gui/models/plan_story.hpp"
#include "tests/gui/small_scenario.hpp"

namespace shardwright::gui {
namespace {

Sweep sweep(SweepAxis axis) {
  return run_sweep(axis, SweepPlan::Chosen, small_request(), small_set()->scenario(0),
                   [](double) {}, {});
}

TEST(Sweep, MoreBandwidthIsNeverSlower) {
  for (const SweepAxis axis : {SweepAxis::ScaleUpBandwidth, SweepAxis::MemoryBandwidth}) {
    double before = std::numeric_limits<double>::infinity();
    for (const SweepPoint& point : sweep(axis).points) {
      ASSERT_TRUE(point.best);
      EXPECT_LE(point.best->result.step.value(), before * 1.0001);
      before = point.best->result.step.value();
    }
  }
}

TEST(Sweep, GoesThroughThePlanAsItIs) {
  const Scenario scenario = small_set()->scenario(0);
  const Sweep batches = sweep(SweepAxis::GlobalBatch);
  const auto same =
      std::find_if(batches.points.begin(), batches.points.end(), [&](const SweepPoint& point) {
        return point.x == static_cast<double>(scenario.plan.global_batch);
      });
  ASSERT_NE(same, batches.points.end());
  EXPECT_DOUBLE_EQ(same->best->result.step.value(), small_set()->plans.front().result.step.value());
}

TEST(Sweep, LongSequencesStopFitting) {
  const Sweep lengths = sweep(SweepAxis::SeqLen);
  EXPECT_TRUE(lengths.points.front().fits);
  EXPECT_FALSE(lengths.points.back().fits);
  EXPECT_FALSE(lengths.points.back().why_not.isEmpty());
  ASSERT_TRUE(lengths.knee);
}

// The chosen plan is the best of the narrow search where it was found, and one of many elsewhere.
TEST(Sweep, TheBestPlanOfAPointIsNoSlowerThanTheChosenOne) {
  planner::PlanRequest request = small_request();
  request.limits = narrow_limits();
  request.constraints = {};
  const planner::SearchResult found = planner::search(request);
  const Scenario chosen = planner::scenario_of(request, found.plans.front().plan);
  for (const SweepAxis axis :
       {SweepAxis::GlobalBatch, SweepAxis::SeqLen, SweepAxis::MemoryBandwidth}) {
    const auto along = [&](SweepPlan plan) {
      return run_sweep(axis, plan, request, chosen, [](double) {}, {});
    };
    const Sweep best = along(SweepPlan::Best), same = along(SweepPlan::Chosen);
    ASSERT_EQ(best.points.size(), same.points.size());
    for (std::size_t i = 0; i < best.points.size(); ++i) {
      EXPECT_EQ(best.points[i].x, same.points[i].x);
      if (!same.points[i].fits) continue;
      ASSERT_TRUE(best.points[i].best);
      EXPECT_LE(best.points[i].best->dollars_per_token(),
                1.0001 * same.points[i].best->dollars_per_token())
          << title_of(axis).toStdString() << " " << best.points[i].x;
    }
  }
}

TEST(Sweep, SizesAreSearchedAgain) {
  const Sweep sizes = sweep(SweepAxis::Gpus);
  EXPECT_EQ(sizes.plan, SweepPlan::Best);
  ASSERT_GT(sizes.points.size(), 3U);
  for (const SweepPoint& point : sizes.points) {
    if (!point.best) continue;
    EXPECT_EQ(static_cast<double>(point.best->plan.world_size()), point.x);
  }
}

TEST(Sweep, TheIntervalHoldsThePrediction) {
  for (int i = 0; i < kSweepFigures; ++i) {
    const SweepValue value = value_of(static_cast<SweepFigure>(i), small_set()->plans.front(),
                                      sim::PredictionGround::StatedPlan);
    EXPECT_LE(value.low, value.value) << i;
    EXPECT_GE(value.high, value.value) << i;
  }
}

// What is known of a family says less about one of its members.
TEST(Sweep, TheIntervalIsWiderOnAGenericStack) {
  const planner::PlanCandidate& best = small_set()->plans.front();
  const auto width = [&](const char* stack) {
    const SweepValue value =
        value_of(SweepFigure::Step, best,
                 sim::ground_of(small_request().cluster.accelerator, load_stack(stack)));
    return value.high - value.low;
  };
  EXPECT_GT(width("generic-megatron"), width("megatron-core"));
  EXPECT_EQ(width("shardwright"), 0.0);  // nothing was published that ran on it
}

// A band around a figure whose error nobody measured would be made up.
TEST(Sweep, OnlyWhatHangsOnTheStepTimeHasAnInterval) {
  for (int i = 0; i < kSweepFigures; ++i) {
    const auto figure = static_cast<SweepFigure>(i);
    const SweepValue value =
        value_of(figure, small_set()->plans.front(), sim::PredictionGround::StatedPlan);
    EXPECT_EQ(value.high > value.low, has_interval(figure) && value.value > 0.0) << i;
  }
  EXPECT_FALSE(has_interval(SweepFigure::Memory));
  EXPECT_FALSE(knee_is_of(SweepAxis::GlobalBatch, SweepFigure::Memory));
  EXPECT_TRUE(knee_is_of(SweepAxis::SeqLen, SweepFigure::Memory));
}

TEST(Sweep, SaysWhyThereIsNoKnee) {
  for (int i = 0; i < kSweepAxes; ++i) {
    const Sweep along = sweep(static_cast<SweepAxis>(i));
    EXPECT_FALSE(along.knee_reason.isEmpty()) << i;
    if (along.knee && along.axis == SweepAxis::GlobalBatch) {
      const auto at = std::find_if(along.points.begin(), along.points.end(),
                                   [&](const SweepPoint& point) { return point.x == *along.knee; });
      ASSERT_NE(at, along.points.end());
      EXPECT_TRUE(at->fits);
    }
  }
}

TEST(Sweep, EndsWhenStopped) {
  std::stop_source stop;
  stop.request_stop();
  const Sweep none = run_sweep(
      SweepAxis::GlobalBatch, SweepPlan::Chosen, small_request(), small_set()->scenario(0),
      [](double) {}, stop.get_token());
  EXPECT_TRUE(none.points.empty());
}

TEST(PlanStory, ThePartsOfTheTimeAddUpToTheStep) {
  for (const planner::PlanCandidate& candidate : small_set()->plans) {
    Seconds sum;
    for (const TimePart& part : time_parts(candidate.result.time())) sum += part.time;
    EXPECT_NEAR(sum.value(), candidate.result.step.value(), 1e-6 * candidate.result.step.value());
  }
}

TEST(PlanStory, NamesTheMomentOfThePeak) {
  const PlanStory story = tell_story(small_set()->scenario(0), {});
  EXPECT_TRUE(story.peak_moment.startsWith(QStringLiteral("while ")))
      << qPrintable(story.peak_moment);
  EXPECT_EQ(story.explanation.sensitivities.size(), 7U);
}

}  // namespace
}  // namespace shardwright::gui
