#include "gui/models/sweep.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/spec/profile_library.hpp"
#include "gui/models/plan_search.hpp"
#include "gui/models/plan_story.hpp"
#include "planner/scale.hpp"
#include "tests/gui/small_scenario.hpp"

namespace shardwright::gui {
namespace {

Sweep sweep(SweepAxis axis) {
  return run_sweep(axis, SweepPlan::Chosen, small_request(), small_set()->scenario(0), {}, {});
}

// Where memory is so tight that the usual schedules and shardings do not hold the best plan.
planner::PlanRequest tight_request() {
  ScenarioChoice choice = small_choice();
  choice.gpus = 4;
  choice.seq_len = 8192;
  choice.constraints = "tp=1,2; pp=1; cp=1; schedule=1f1b";
  planner::PlanRequest request = load_request(choice);
  request.max_memory = gigabytes(24.0);
  return request;
}

struct WatchedSweep {
  Sweep answer;
  std::vector<Sweep> before;   // the answer, in order
  std::vector<double> shares;  // of the work
};

WatchedSweep watched_sweep(SweepAxis axis, const planner::PlanRequest& request) {
  WatchedSweep watched;
  SweepWatch watch;
  watch.progress = [&](double share) { watched.shares.push_back(share); };
  watch.found = [&](const Sweep& sweep) { watched.before.push_back(sweep); };
  const Scenario chosen = planner::scenario_of(request, planner::search(request).plans.at(0).plan);
  watched.answer = run_sweep(axis, SweepPlan::Best, request, chosen, watch, {});
  return watched;
}

// Preliminary points that are not the answer's.
std::size_t count_refined(const WatchedSweep& watched) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < watched.answer.points.size(); ++i) {
    const auto &first = watched.before.at(0).points[i].best, &last = watched.answer.points[i].best;
    count += first.has_value() != last.has_value() || (last && first->plan != last->plan) ? 1U : 0U;
  }
  return count;
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

// However far it is from the least one, and whatever its factors are.
TEST(Sweep, AlongTheBatchThePlansOwnIsAPoint) {
  Scenario scenario = small_set()->scenario(0);
  const std::int64_t least = scenario.plan.dp * scenario.plan.micro_batch;
  for (const std::int64_t microbatches : {1, 5, 48, 1024, 1000}) {
    scenario.plan.global_batch = microbatches * least;
    const Sweep batches =
        run_sweep(SweepAxis::GlobalBatch, SweepPlan::Chosen, small_request(), scenario, {}, {});
    EXPECT_LE(batches.points.size(), 10U);
    EXPECT_GE(batches.points.size(), 5U);
    std::int64_t before = 0;
    bool has_own = false;
    for (const SweepPoint& point : batches.points) {
      const auto batch = static_cast<std::int64_t>(point.x);
      EXPECT_GT(batch, before);
      EXPECT_EQ(batch % least, 0) << "dp and micro-batch divide no batch of " << batch;
      has_own = has_own || batch == scenario.plan.global_batch;
      before = batch;
    }
    EXPECT_TRUE(has_own) << scenario.plan.global_batch;
    EXPECT_GE(before, 8 * scenario.plan.global_batch);
  }
}

// As `shardwright scale --global-batch auto` chooses it: one for all sizes.
TEST(Sweep, SizesOfAnOpenBatchTrainTheCommandsBatch) {
  planner::PlanRequest request = small_request();
  request.global_batch = 0;
  request.max_global_batch = 64;
  const Sweep sizes =
      run_sweep(SweepAxis::Gpus, SweepPlan::Best, request, small_set()->scenario(0), {}, {});
  std::vector<std::int64_t> gpus;
  for (const SweepPoint& point : sizes.points) gpus.push_back(static_cast<std::int64_t>(point.x));
  const planner::ScaleResult scaled = planner::scale(request, gpus);
  ASSERT_TRUE(scaled.points.back().best);
  EXPECT_EQ(sizes.chosen_batch, scaled.points.back().best->plan.global_batch);
  for (const SweepPoint& point : sizes.points) {
    if (!point.best) continue;
    EXPECT_EQ(point.best->plan.global_batch, sizes.chosen_batch);
  }
  EXPECT_FALSE(sweep(SweepAxis::Gpus).chosen_batch);  // the request says it
}

TEST(Sweep, WithoutANicThereIsNothingToSweep) {
  planner::PlanRequest request = small_request();
  request.cluster.node.nic.bandwidth = BytesPerSecond(0.0);
  Scenario scenario = small_set()->scenario(0);
  scenario.cluster = request.cluster;
  for (const SweepPlan plan : {SweepPlan::Best, SweepPlan::Chosen}) {
    const Sweep none = run_sweep(SweepAxis::ScaleOutBandwidth, plan, request, scenario, {}, {});
    EXPECT_TRUE(none.points.empty());
    EXPECT_FALSE(none.knee);
    EXPECT_TRUE(none.obstacle.contains(QStringLiteral("no NIC"))) << qPrintable(none.obstacle);
    EXPECT_TRUE(none.is_final());
  }
  EXPECT_TRUE(sweep(SweepAxis::ScaleOutBandwidth).obstacle.isEmpty());
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
      return run_sweep(axis, plan, request, chosen, {}, {});
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
                                      validation::PredictionGround::StatedPlan);
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
                 validation::ground_of(small_request().cluster.accelerator, load_stack(stack)));
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
        value_of(figure, small_set()->plans.front(), validation::PredictionGround::StatedPlan);
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
    // The line that is drawn at first is that of a GPU, which falls.
    if (along.axis == SweepAxis::Gpus && !along.knee) {
      EXPECT_TRUE(along.knee_reason.contains(QStringLiteral("of the whole cluster")));
    }
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
  for (const SweepAxis axis : {SweepAxis::Gpus, SweepAxis::GlobalBatch}) {
    for (const SweepPlan plan : {SweepPlan::Best, SweepPlan::Chosen}) {
      const Sweep none =
          run_sweep(axis, plan, small_request(), small_set()->scenario(0), {}, stop.get_token());
      EXPECT_TRUE(none.points.empty());
    }
  }
}

TEST(Sweep, SizesEndAsTheCommandsScale) {
  const planner::PlanRequest request = tight_request();
  const WatchedSweep watched = watched_sweep(SweepAxis::Gpus, request);
  const Sweep& sizes = watched.answer;
  std::vector<std::int64_t> gpus;
  for (const SweepPoint& point : sizes.points) gpus.push_back(static_cast<std::int64_t>(point.x));
  const planner::ScaleResult scaled = planner::scale(request, gpus);
  ASSERT_GT(gpus.size(), 3U);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const SweepPoint& point = sizes.points[i];
    EXPECT_FALSE(point.preliminary);
    ASSERT_EQ(point.best.has_value(), scaled.points[i].best.has_value()) << gpus[i];
    if (!point.best) continue;
    EXPECT_EQ(point.best->plan, scaled.points[i].best->plan) << gpus[i];
    EXPECT_EQ(point.best->result.step, scaled.points[i].best->result.step) << gpus[i];
  }
  ASSERT_EQ(sizes.knee.has_value(), scaled.knee.has_value());
  if (scaled.knee) {
    EXPECT_EQ(*sizes.knee, static_cast<double>(*scaled.knee));
  }
  EXPECT_GT(count_refined(watched), 0U);  // else the usual plans would have done
}

TEST(Sweep, BatchesEndAsSearchesOfEach) {
  planner::PlanRequest request = tight_request();
  request.max_memory = gigabytes(16.0);
  const WatchedSweep watched = watched_sweep(SweepAxis::GlobalBatch, request);
  request.top = 5;
  for (const SweepPoint& point : watched.answer.points) {
    request.global_batch = static_cast<std::int64_t>(point.x);
    const planner::SearchResult found = planner::search(request);
    ASSERT_EQ(point.best.has_value(), !found.plans.empty()) << point.x;
    EXPECT_EQ(point.fits, point.best.has_value());
    if (!point.best) continue;
    EXPECT_EQ(point.best->plan, found.plans.front().plan) << point.x;
  }
  EXPECT_GT(count_refined(watched), 0U);
}

// All points at once from the narrow search, then one after the other from the whole one.
TEST(Sweep, PointsArePreliminaryUntilTheWholeSpaceIsSearched) {
  for (const SweepAxis axis : {SweepAxis::Gpus, SweepAxis::GlobalBatch}) {
    const WatchedSweep watched = watched_sweep(axis, tight_request());
    const std::size_t points = watched.answer.points.size();
    ASSERT_EQ(watched.before.size(), points);
    for (std::size_t i = 0; i < points; ++i) {
      const Sweep& sweep = watched.before[i];
      ASSERT_EQ(sweep.points.size(), points);
      for (std::size_t k = 0; k < points; ++k) EXPECT_EQ(sweep.points[k].preliminary, k >= i);
      EXPECT_FALSE(sweep.is_final());
      EXPECT_FALSE(sweep.knee);
      EXPECT_TRUE(sweep.knee_reason.isEmpty());
    }
    EXPECT_TRUE(watched.answer.is_final());
    EXPECT_FALSE(watched.answer.knee_reason.isEmpty());
    EXPECT_TRUE(std::is_sorted(watched.shares.begin(), watched.shares.end()));
    EXPECT_LE(watched.shares.back(), 1.0);
  }
}

TEST(Sweep, StoppedBetweenTheSearchesItKeepsWhatIsPreliminary) {
  for (const SweepAxis axis : {SweepAxis::Gpus, SweepAxis::GlobalBatch}) {
    std::stop_source stop;
    SweepWatch watch;
    watch.found = [&](const Sweep&) { stop.request_stop(); };
    const Sweep stopped = run_sweep(axis, SweepPlan::Best, small_request(),
                                    small_set()->scenario(0), watch, stop.get_token());
    ASSERT_FALSE(stopped.points.empty());
    for (const SweepPoint& point : stopped.points) EXPECT_TRUE(point.preliminary);
    EXPECT_FALSE(stopped.knee);
  }
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
