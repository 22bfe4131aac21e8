#include "planner/sweep.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/base/error.hpp"
#include "core/base/nearest_name.hpp"
#include "core/spec/plan_check.hpp"
#include "planner/scale.hpp"
#include "tests/planner/shipped_requests.hpp"

namespace shardwright::planner {
namespace {

// A request that is searched in a fraction of a second.
PlanRequest quick_request() {
  PlanRequest request = request_for("llama3.2-1b", 8, 32, 2048);
  fix(request, {"schedule=1f1b", "zero=1,3"});
  return request;
}

const SearchResult& small_result() {
  static const SearchResult result = search(quick_request());
  return result;
}

Scenario small_scenario() {
  return scenario_of(quick_request(), small_result().plans.front().plan);
}

SweepRequest small_sweep(SweepAxis axis, SweepPlan plan = SweepPlan::Chosen) {
  return {axis, plan, {}, quick_request(), small_scenario()};
}

Sweep sweep(SweepAxis axis) {
  return run_sweep(small_sweep(axis));
}

// Memory is so tight that the usual schedules and shardings do not hold the best plan.
PlanRequest tight_request() {
  PlanRequest request = quick_request();
  request.gpus = 4;
  request.seq_len = 8192;
  fix(request, {"tp=1,2", "pp=1", "cp=1", "schedule=1f1b"});
  request.max_memory = gigabytes(24.0);
  return request;
}

struct WatchedSweep {
  Sweep answer;
  // The sweeps that were found before the answer, in order.
  std::vector<Sweep> before;
  // Shares of the work.
  std::vector<double> shares;
};

WatchedSweep watched_sweep(SweepAxis axis, const PlanRequest& request) {
  WatchedSweep watched;
  SweepWatch watch;
  watch.progress = [&](double share) { watched.shares.push_back(share); };
  watch.found = [&](const Sweep& found) { watched.before.push_back(found); };
  const Scenario chosen = scenario_of(request, search(request).plans.at(0).plan);
  watched.answer = run_sweep({axis, SweepPlan::Best, {}, request, chosen}, watch);
  return watched;
}

std::vector<std::int64_t> gpus_of(const Sweep& sizes) {
  std::vector<std::int64_t> gpus;
  for (const SweepPoint& point : sizes.points)
    gpus.push_back(static_cast<std::int64_t>(point.value));
  return gpus;
}

// Counts preliminary points that are not the answer's.
std::size_t count_refined(const WatchedSweep& watched) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < watched.answer.points.size(); ++i) {
    const auto& first = watched.before.at(0).points[i].candidate;
    const auto& last = watched.answer.points[i].candidate;
    count += first.has_value() != last.has_value() || (last && first->plan != last->plan) ? 1U : 0U;
  }
  return count;
}

TEST(Sweep, MoreBandwidthIsNeverSlower) {
  for (const SweepAxis axis : {SweepAxis::ScaleUpBandwidth, SweepAxis::MemoryBandwidth}) {
    double before = std::numeric_limits<double>::infinity();
    for (const SweepPoint& point : sweep(axis).points) {
      ASSERT_TRUE(point.candidate);
      EXPECT_LE(point.candidate->result.step.value(), before * 1.0001);
      before = point.candidate->result.step.value();
    }
  }
}

TEST(Sweep, GoesThroughThePlanAsItIs) {
  const Scenario scenario = small_scenario();
  const Sweep batches = sweep(SweepAxis::GlobalBatch);
  const auto same =
      std::find_if(batches.points.begin(), batches.points.end(), [&](const SweepPoint& point) {
        return point.value == static_cast<double>(scenario.plan.global_batch);
      });
  ASSERT_NE(same, batches.points.end());
  EXPECT_EQ(same->candidate->result.step, small_result().plans.front().result.step);
}

// The own batch may be far from the least one, and may have any factors.
TEST(Sweep, AlongTheBatchThePlansOwnIsAPoint) {
  SweepRequest request = small_sweep(SweepAxis::GlobalBatch);
  Plan& plan = request.scenario.plan;
  const std::int64_t least = plan.dp * plan.micro_batch;
  for (const std::int64_t microbatches : {1, 5, 48, 1024, 1000}) {
    plan.global_batch = microbatches * least;
    const Sweep batches = run_sweep(request);
    EXPECT_LE(batches.points.size(), 10U);
    EXPECT_GE(batches.points.size(), 5U);
    std::int64_t before = 0;
    bool has_own = false;
    for (const std::int64_t batch : gpus_of(batches)) {
      EXPECT_GT(batch, before);
      EXPECT_EQ(batch % least, 0) << "dp and microbatch divide no batch of " << batch;
      has_own = has_own || batch == plan.global_batch;
      before = batch;
    }
    EXPECT_TRUE(has_own) << plan.global_batch;
    EXPECT_GE(before, 8 * plan.global_batch);
  }
}

TEST(Sweep, GivenValuesReplaceTheUsualOnes) {
  SweepRequest request = small_sweep(SweepAxis::SeqLen);
  request.values = {1024.0, 2048.0};
  const Sweep lengths = run_sweep(request);
  ASSERT_EQ(lengths.points.size(), 2U);
  EXPECT_EQ(lengths.points[1].candidate->plan.seq_len, 2048);
  EXPECT_EQ(lengths.points[1].candidate->tokens(), lengths.points[0].candidate->tokens());
  request.axis = SweepAxis::GlobalBatch;
  request.scenario.plan.micro_batch = 2;
  request.values = {1.0, 2.0 * static_cast<double>(request.scenario.plan.dp)};
  const Sweep batches = run_sweep(request);
  ASSERT_EQ(batches.points.size(), 2U);
  EXPECT_TRUE(batches.points[0].broken_rule);  // less than a microbatch for each replica
  EXPECT_FALSE(batches.points[0].candidate);
  EXPECT_FALSE(batches.points[0].fits);
  EXPECT_TRUE(batches.points[1].candidate);
}

// `shardwright scale --global-batch auto` chooses the same: one batch for all sizes.
TEST(Sweep, SizesOfAnOpenBatchTrainTheBatchOfScale) {
  SweepRequest request = small_sweep(SweepAxis::Gpus, SweepPlan::Best);
  request.request.global_batch = 0;
  request.request.max_global_batch = 64;
  const Sweep sizes = run_sweep(request);
  const ScaleResult scaled = scale(request.request, gpus_of(sizes));
  ASSERT_TRUE(scaled.points.back().best);
  EXPECT_EQ(sizes.chosen_batch, scaled.points.back().best->plan.global_batch);
  for (const SweepPoint& point : sizes.points) {
    if (!point.candidate) continue;
    EXPECT_EQ(point.candidate->plan.global_batch, sizes.chosen_batch);
  }
  EXPECT_FALSE(sweep(SweepAxis::Gpus).chosen_batch);  // the request says it
}

TEST(Sweep, WithoutANicThereIsNothingToSweep) {
  for (const SweepPlan plan : {SweepPlan::Best, SweepPlan::Chosen}) {
    SweepRequest request = small_sweep(SweepAxis::ScaleOutBandwidth, plan);
    request.request.cluster.node.nic.bandwidth = BytesPerSecond(0.0);
    request.scenario.cluster = request.request.cluster;
    const Sweep none = run_sweep(request);
    EXPECT_TRUE(none.points.empty());
    EXPECT_FALSE(none.knee);
    EXPECT_TRUE(none.lacks_link);
    EXPECT_TRUE(none.is_final());
  }
  EXPECT_FALSE(sweep(SweepAxis::ScaleOutBandwidth).lacks_link);
}

TEST(Sweep, LongSequencesStopFitting) {
  const Sweep lengths = sweep(SweepAxis::SeqLen);
  EXPECT_TRUE(lengths.points.front().fits);
  EXPECT_FALSE(lengths.points.back().fits);
  ASSERT_TRUE(lengths.knee);
  EXPECT_TRUE(lengths.points[*lengths.knee].fits);
  EXPECT_FALSE(lengths.points[*lengths.knee + 1].fits);
}

// The chosen plan is the best of the narrow search where it was found, and one of many elsewhere.
TEST(Sweep, TheBestPlanOfAPointIsNoSlowerThanTheChosenOne) {
  PlanRequest request = quick_request();
  request.limits = narrow_limits();
  request.constraints = {};
  const Scenario chosen = scenario_of(request, search(request).plans.front().plan);
  for (const SweepAxis axis :
       {SweepAxis::GlobalBatch, SweepAxis::SeqLen, SweepAxis::MemoryBandwidth}) {
    const auto along = [&](SweepPlan plan) { return run_sweep({axis, plan, {}, request, chosen}); };
    const Sweep best = along(SweepPlan::Best), same = along(SweepPlan::Chosen);
    ASSERT_EQ(best.points.size(), same.points.size());
    for (std::size_t i = 0; i < best.points.size(); ++i) {
      EXPECT_EQ(best.points[i].value, same.points[i].value);
      if (!same.points[i].fits) continue;
      ASSERT_TRUE(best.points[i].candidate);
      EXPECT_LE(best.points[i].candidate->dollars_per_token(),
                1.0001 * same.points[i].candidate->dollars_per_token())
          << name_of(axis) << " " << best.points[i].value;
    }
  }
}

TEST(Sweep, SizesAreSearchedAgain) {
  const Sweep sizes = sweep(SweepAxis::Gpus);
  EXPECT_EQ(sizes.plan, SweepPlan::Best);
  ASSERT_GT(sizes.points.size(), 3U);
  for (const SweepPoint& point : sizes.points) {
    if (!point.candidate) continue;
    EXPECT_EQ(static_cast<double>(point.candidate->plan.world_size()), point.value);
  }
}

TEST(Sweep, TheKneeOfTheBatchIsTheSmallestOneWithNearlyAllThroughput) {
  const Sweep batches = sweep(SweepAxis::GlobalBatch);
  double best = 0.0;
  for (const SweepPoint& point : batches.points) {
    if (point.fits) best = std::max(best, point.tokens_per_s());
  }
  ASSERT_TRUE(batches.knee);
  for (std::size_t i = 0; i <= *batches.knee; ++i) {
    const bool reaches =
        batches.points[i].fits && batches.points[i].tokens_per_s() >= kKneeThroughput * best;
    EXPECT_EQ(reaches, i == *batches.knee);
  }
}

TEST(Sweep, EndsWhenStopped) {
  std::stop_source stop;
  stop.request_stop();
  for (const SweepAxis axis : {SweepAxis::Gpus, SweepAxis::GlobalBatch}) {
    for (const SweepPlan plan : {SweepPlan::Best, SweepPlan::Chosen}) {
      SweepRequest request = small_sweep(axis, plan);
      request.request.stop = stop.get_token();
      const Sweep none = run_sweep(request);
      EXPECT_TRUE(none.points.empty());
      EXPECT_TRUE(none.partial);
    }
  }
}

TEST(Sweep, SizesAreThoseOfScale) {
  const PlanRequest request = tight_request();
  const WatchedSweep watched = watched_sweep(SweepAxis::Gpus, request);
  const Sweep& sizes = watched.answer;
  const std::vector<std::int64_t> gpus = gpus_of(sizes);
  const ScaleResult scaled = scale(request, gpus);
  ASSERT_GT(gpus.size(), 3U);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const SweepPoint& point = sizes.points[i];
    EXPECT_FALSE(point.preliminary);
    ASSERT_EQ(point.candidate.has_value(), scaled.points[i].best.has_value()) << gpus[i];
    if (!point.candidate) continue;
    EXPECT_EQ(point.candidate->plan, scaled.points[i].best->plan) << gpus[i];
    EXPECT_EQ(point.candidate->result.step, scaled.points[i].best->result.step) << gpus[i];
  }
  ASSERT_EQ(sizes.knee.has_value(), scaled.knee.has_value());
  if (scaled.knee) {
    EXPECT_EQ(gpus[*sizes.knee], scaled.knee->gpus);
  }
  EXPECT_GT(count_refined(watched), 0U);  // else the usual plans would have done
}

TEST(Sweep, BatchesAreThoseOfSearches) {
  PlanRequest request = tight_request();
  request.max_memory = gigabytes(16.0);
  const WatchedSweep watched = watched_sweep(SweepAxis::GlobalBatch, request);
  for (const SweepPoint& point : watched.answer.points) {
    request.global_batch = static_cast<std::int64_t>(point.value);
    const SearchResult found = search(request);
    ASSERT_EQ(point.candidate.has_value(), !found.plans.empty()) << point.value;
    EXPECT_EQ(point.fits, point.candidate.has_value());
    if (!point.candidate) continue;
    EXPECT_EQ(point.candidate->plan, found.plans.front().plan) << point.value;
    EXPECT_EQ(point.candidate->result.step, found.plans.front().result.step) << point.value;
  }
  EXPECT_GT(count_refined(watched), 0U);
}

// All points come at once from the narrow search, then one after the other from the whole one.
TEST(Sweep, PointsArePreliminaryUntilTheWholeSpaceIsSearched) {
  for (const SweepAxis axis : {SweepAxis::Gpus, SweepAxis::GlobalBatch}) {
    const WatchedSweep watched = watched_sweep(axis, tight_request());
    const std::size_t points = watched.answer.points.size();
    ASSERT_EQ(watched.before.size(), points);
    for (std::size_t i = 0; i < points; ++i) {
      const Sweep& before = watched.before[i];
      ASSERT_EQ(before.points.size(), points);
      for (std::size_t k = 0; k < points; ++k) EXPECT_EQ(before.points[k].preliminary, k >= i);
      EXPECT_FALSE(before.is_final());
      EXPECT_FALSE(before.knee);
    }
    EXPECT_TRUE(watched.answer.is_final());
    EXPECT_FALSE(watched.answer.partial);
    EXPECT_TRUE(std::is_sorted(watched.shares.begin(), watched.shares.end()));
    EXPECT_LE(watched.shares.back(), 1.0);
  }
}

TEST(Sweep, StoppedBetweenTheSearchesItKeepsWhatIsPreliminary) {
  for (const SweepAxis axis : {SweepAxis::Gpus, SweepAxis::GlobalBatch}) {
    std::stop_source stop;
    SweepWatch watch;
    watch.found = [&](const Sweep&) { stop.request_stop(); };
    SweepRequest request = small_sweep(axis, SweepPlan::Best);
    request.request.stop = stop.get_token();
    const Sweep stopped = run_sweep(request, watch);
    ASSERT_FALSE(stopped.points.empty());
    for (const SweepPoint& point : stopped.points) EXPECT_TRUE(point.preliminary);
    EXPECT_FALSE(stopped.knee);
    EXPECT_TRUE(stopped.partial);
  }
}

// Nobody watches, so the narrow space is not searched: the answer is the same.
TEST(Sweep, UnwatchedItHasTheSameAnswer) {
  const PlanRequest request = tight_request();
  const WatchedSweep watched = watched_sweep(SweepAxis::GlobalBatch, request);
  const Scenario chosen = scenario_of(request, search(request).plans.at(0).plan);
  const Sweep alone = run_sweep({SweepAxis::GlobalBatch, SweepPlan::Best, {}, request, chosen});
  ASSERT_EQ(alone.points.size(), watched.answer.points.size());
  for (std::size_t i = 0; i < alone.points.size(); ++i) {
    ASSERT_EQ(alone.points[i].fits, watched.answer.points[i].fits);
    if (!alone.points[i].fits) continue;
    EXPECT_EQ(alone.points[i].candidate->plan, watched.answer.points[i].candidate->plan);
  }
  EXPECT_EQ(alone.knee, watched.answer.knee);
}

TEST(Sweep, AxesAreNamed) {
  for (const SweepAxis axis : enumerators<SweepAxis>())
    EXPECT_EQ(parse_name<SweepAxis>(name_of(axis), "QUANTITY"), axis);
  EXPECT_THROW(parse_name<SweepAxis>("gpu", "QUANTITY"), InputError);
}

// The points of a plan's own batch are ones that its schedule runs, and no unit is larger than the
// schedule asks for.
TEST(Sweep, BatchesOfAPlanAreOnesThatItsScheduleRuns) {
  SweepRequest request = small_sweep(SweepAxis::GlobalBatch);
  Plan& plan = request.scenario.plan;
  plan = Plan();
  plan.seq_len = 2048;
  plan.pp = 4;
  plan.dp = 2;
  for (const ScheduleKind kind : enumerators<ScheduleKind>()) {
    plan.schedule = kind;
    plan.vpp = kind == ScheduleKind::Interleaved ? 2 : 1;
    plan.global_batch = 128;
    if (!broken_rules(request.scenario.model, &request.scenario.cluster, plan).empty())
      plan.vpp = 2;
    if (!broken_rules(request.scenario.model, &request.scenario.cluster, plan).empty()) continue;
    const std::int64_t unit = batch_unit(plan);
    EXPECT_EQ(unit, kind == ScheduleKind::Interleaved ? 8 : unit) << name_of(kind);
    for (const std::int64_t smaller : {unit / 2, unit}) {
      plan.global_batch = 128 + smaller;
      const bool runs =
          broken_rules(request.scenario.model, &request.scenario.cluster, plan).empty();
      EXPECT_EQ(runs, smaller == unit) << name_of(kind) << " " << smaller;
    }
    plan.global_batch = 128;
    for (const SweepPoint& point : run_sweep(request).points)
      EXPECT_TRUE(point.candidate || point.value < 16.0) << name_of(kind) << " " << point.value;
  }
}

}  // namespace
}  // namespace shardwright::planner
