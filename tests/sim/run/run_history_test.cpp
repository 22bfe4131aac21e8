// Runs told from beginning to end: their spans hold what the sums of the simulation hold.
#include "sim/run/run_history.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace shardwright::sim {
namespace {

constexpr double kOneHour = 3600.0;
// All of the work, but for rounding.
constexpr double kDone = 1.0 - 1e-9;

// Failures every five hours that need a spare node, of which there are few.
RunModel often_failing_model() {
  RunModel model;
  model.work[RunPart::Step] = Seconds(900.0 * kOneHour);
  model.work[RunPart::Evaluation] = Seconds(60.0 * kOneHour);
  model.work[RunPart::Straggler] = Seconds(40.0 * kOneHour);
  model.interval = Seconds(0.5 * kOneHour);
  model.checkpoint = {Seconds(20), Seconds(200), Seconds(500), 4,
                      Seconds(50), Seconds(90),  Seconds(20)};
  model.startup = Seconds(600);
  model.restart = Seconds(150);
  model.repair = Seconds(20.0 * kOneHour);
  model.spares = 2;
  model.correlated = 0.2;
  model.correlated_nodes = 2;
  FailureProcess& hosts = model.failures[FailureCause::Host];
  hosts.rate = Hertz(1.0 / (5.0 * kOneHour));
  hosts.detection = Seconds(100);
  FailureProcess& stops = model.failures[FailureCause::Maintenance];
  stops.rate = Hertz(1.0 / (50.0 * kOneHour));
  stops.planned = true;
  FailureProcess& silent = model.failures[FailureCause::SilentCorruption];
  silent.rate = Hertz(1.0 / (90.0 * kOneHour));
  silent.detection = Seconds(900);
  silent.silent = true;
  return model;
}

std::vector<RunModel> models() {
  RunModel shrinking = often_failing_model();
  shrinking.replicas = 16;
  RunModel from_replicas = often_failing_model();
  from_replicas.from_replicas = true;
  from_replicas.load_replica = Seconds(30);
  return {often_failing_model(), shrinking, from_replicas};
}

TEST(RunHistory, ItsSpansHaveTheTimesOfTheRun) {
  for (const RunModel& model : models()) {
    for (const std::int64_t index : {0, 1, 2}) {
      const RunOptions options{.runs = 3};
      const RunHistory history = simulate_history(model, options, index);
      const RunOutcome plain = simulate_run(model, options, index);
      ASSERT_TRUE(history.outcome.finished);
      EXPECT_EQ(history.outcome.wall, plain.wall);
      EXPECT_EQ(static_cast<std::int64_t>(history.interruptions.size()),
                plain.total_interruptions());
      Seconds at;
      for (const RunSpan& span : history.spans) {
        EXPECT_EQ(span.begin, at);
        at = span.end;
      }
      EXPECT_EQ(at, plain.wall);
      RunTimes sums{};
      for (const RunTimes& part : history.times_between(Seconds(), plain.wall, 17))
        for (const RunPart use : enumerators<RunPart>()) sums[use] += part[use];
      for (const RunPart use : enumerators<RunPart>())
        EXPECT_NEAR(sums[use].value(), plain.times[use].value(), 1e-6 * plain.wall.value())
            << name_of(use);
    }
  }
}

TEST(RunHistory, AFailureTakesTheRunBackByWhatItLoses) {
  const RunHistory history = simulate_history(often_failing_model(), {.runs = 1}, 0);
  Seconds lost;
  for (const RunInterruption& each : history.interruptions) {
    const double before = history.progress_at(each.time - Seconds(1e-3));
    const double after = history.progress_at(each.time + Seconds(1e-3));
    EXPECT_NEAR((before - after) * history.running_time.value(), each.lost.value(), 0.1);
    lost += each.lost;
  }
  EXPECT_GT(lost, Seconds());
}

TEST(RunTrajectory, RunsHaveEndedWhenTheirWallTimesSay) {
  RunModel model = often_failing_model();
  model.step_low = 0.9;
  model.step_high = 1.2;
  const RunOptions options{.runs = 101};
  const RunStatistics all = simulate_runs(model, options);
  const RunTrajectory course = run_trajectory(model, options, Seconds(1.1 * all.wall.p90), 300);
  ASSERT_EQ(course.times.size(), course.progress.size());
  EXPECT_EQ(course.median.outcome.wall.value(), all.wall.p50);
  for (std::size_t i = 0; i < course.times.size(); ++i) {
    const Percentiles& done = course.progress[i];
    EXPECT_LE(done.p10, done.p50);
    EXPECT_LE(done.p50, done.p90);
    EXPECT_EQ(done.p90 >= kDone, course.times[i].value() >= all.wall.p10) << i;
    EXPECT_EQ(done.p10 >= kDone, course.times[i].value() >= all.wall.p90) << i;
  }
}

}  // namespace
}  // namespace shardwright::sim
