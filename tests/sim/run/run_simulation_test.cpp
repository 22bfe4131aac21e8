// The laws of runs over weeks.
#include "sim/run/run_simulation.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/run/checkpoint_interval.hpp"
#include "sim/run/profile_model.hpp"
#include "sim/run/run_history.hpp"

namespace shardwright::sim {
namespace {

constexpr double kHour = 3600.0;

RunModel quiet_model() {
  RunModel model;
  model.work[RunPart::Step] = Seconds(900.0 * kHour);
  model.work[RunPart::Evaluation] = Seconds(100.0 * kHour);
  model.interval = Seconds(0.5 * kHour);
  model.checkpoint = {Seconds(20), Seconds(20), Seconds(20), 1,
                      Seconds(50), Seconds(50), Seconds(20)};
  model.startup = Seconds(600);
  model.restart = Seconds(150);
  model.repair = Seconds(20.0 * kHour);
  return model;
}

// Failures of hosts every three hours, which are noticed after 100 s.
RunModel failing_model() {
  RunModel model = quiet_model();
  FailureProcess& hosts = model.failures[FailureCause::Host];
  hosts.rate = Hertz(1.0 / (3.0 * kHour));
  hosts.detection = Seconds(100);
  hosts.replaced = 0.0;
  return model;
}

double mean_wall(const RunModel& model, std::int64_t runs = 100) {
  return simulate_runs(model, {.runs = runs}).mean_wall().value();
}

TEST(RunSimulation, WithoutFailuresTheRunIsItsWorkAndItsCheckpoints) {
  const RunStatistics all = simulate_runs(quiet_model(), {.runs = 3});
  // 2,000 intervals.
  EXPECT_DOUBLE_EQ(all.wall.p50, 600.0 + 1000.0 * kHour + 2000.0 * 20.0);
  EXPECT_DOUBLE_EQ(all.wall.p10, all.wall.p90);
  EXPECT_EQ(all.interruptions.p90, 0.0);
}

// Daly (2006), equation 20, of a segment of T with a stall of c: exp(l R) (exp(l (T + c)) - 1) / l.
// It lets failures interrupt the recovery; (1/l + R) (exp(l (T + c)) - 1) does not, and differs by
// (l R)^2 / 2.
TEST(RunSimulation, TheMeanConvergesToTheRenewalFormula) {
  RunModel model = failing_model();
  model.startup = Seconds();
  const double rate = 1.0 / (3.0 * kHour), recovery = 300.0, segment = 0.5 * kHour + 20.0;
  const double grown = std::exp(rate * segment) - 1.0;
  const double wall = mean_wall(model, 200);
  EXPECT_NEAR(wall / (2000.0 * std::exp(rate * recovery) * grown / rate), 1.0, 0.002);
  EXPECT_NEAR(wall / (2000.0 * (1.0 / rate + recovery) * grown), 1.0, 0.002);
}

// A fleet of 90 days whose rate falls: 100 days have rate age / k ((1 + t / age)^k - 1) failures.
TEST(RunSimulation, AYoungFleetFailsLessAndLess) {
  RunModel model = quiet_model();
  model.interval = Seconds(600);
  FailureProcess& hosts = model.failures[FailureCause::Host];
  hosts.rate = Hertz(1.0 / kHour);
  hosts.shape = 0.5;
  hosts.age = Seconds(90.0 * 24.0 * kHour);
  hosts.replaced = 0.0;
  const RunStatistics all = simulate_runs(model, {.runs = 200});
  const double age = hosts.age.value();
  const double expected =
      age / kHour / 0.5 * (std::sqrt(1.0 + all.mean_wall().value() / age) - 1.0);
  EXPECT_NEAR(all.by_cause[FailureCause::Host] / expected, 1.0, 0.01);
}

RunModel random_model() {
  RunModel model = quiet_model();
  const auto number = [](int least, int most) {
    return static_cast<double>(*rc::gen::inRange(least, most));
  };
  model.interval = Seconds(number(300, 7200));
  const Seconds stall(number(0, 120)), behind(number(0, 300));
  const auto every = *rc::gen::inRange(1, 5);
  model.checkpoint = {stall,        stall + behind, stall + 2.0 * behind, every, Seconds(50),
                      Seconds(200), stall};
  for (const FailureCause cause : {FailureCause::Gpu, FailureCause::Software,
                                   FailureCause::Maintenance, FailureCause::SilentCorruption}) {
    FailureProcess& process = model.failures[cause];
    process.rate = Hertz(1.0 / (number(10, 100) * kHour));
    process.shape = *rc::gen::element(0.7, 1.0, 1.5);
    process.age = Seconds(number(500, 10'000) * kHour);
    process.detection = Seconds(number(0, 600));
    process.nodes = *rc::gen::element(1, 1, 4);
    process.replaced = *rc::gen::element(0.0, 0.5, 1.0);
    process.planned = cause == FailureCause::Maintenance;
    process.silent = cause == FailureCause::SilentCorruption;
  }
  model.correlated = 0.2;
  model.correlated_nodes = 3;
  model.manual = 0.1;
  model.manual_time = Seconds(1800);
  model.spares = *rc::gen::inRange(0, 12);
  model.rate_spread = 0.4;
  return model;
}

RC_GTEST_PROP(RunSimulation, TimesAddUpToTheClock, ()) {
  const RunModel model = random_model();
  for (std::int64_t i = 0; i < 5; ++i) {
    const RunOutcome run = simulate_run(model, {.runs = 5}, i);
    RC_ASSERT(std::abs(total(run.times) / run.wall - 1.0) < 1e-9);
    for (const Seconds part : run.times) RC_ASSERT(part >= Seconds());
  }
}

// Each run, not only their mean: variants of a run meet the same failures. Those that a waiting job
// is spared may strike one that does not wait, so that this holds where there are none such.
RC_GTEST_PROP(RunSimulation, FewerFailuresAFasterStoreAndMoreSparesNeverHurt, ()) {
  RunModel model = random_model();
  for (FailureProcess& process : model.failures) {
    process.replaced = 1.0;
    process.silent = false;
  }
  RunModel fewer = model, faster = model, spared = model;
  // A planned stop saves the state, so that a run without it may lose more.
  for (FailureProcess& process : fewer.failures) process.kept = process.planned ? 1.0 : 0.7;
  CheckpointCost& cost = faster.checkpoint;
  for (Seconds* time :
       {&cost.stall, &cost.safe, &cost.stored, &cost.load, &cost.load_stored, &cost.save})
    *time *= 0.5;
  spared.spares += 3;
  for (std::int64_t i = 0; i < 5; ++i) {
    const RunOutcome run = simulate_run(model, {.runs = 5}, i);
    // A run that is given up would have taken longer.
    if (!run.finished) continue;
    const Seconds wall = run.wall * (1.0 + 1e-9);
    RC_ASSERT(simulate_run(fewer, {.runs = 5}, i).wall <= wall);
    RC_ASSERT(simulate_run(faster, {.runs = 5}, i).wall <= wall);
    RC_ASSERT(simulate_run(spared, {.runs = 5}, i).wall <= wall);
  }
}

// Runs that shrink, recover from replicas, swap replicas or are warned save their state at
// failures, and runs that wait are spared some, so that single runs may lose by having fewer; their
// mean must not.
TEST(RunSimulation, ALongerTimeBetweenFailuresNeverHurts) {
  RunModel plain = failing_model();
  plain.failures[FailureCause::Host].replaced = 1.0;
  plain.failures[FailureCause::Rack] = plain.failures[FailureCause::Host];
  plain.failures[FailureCause::Rack].rate *= 0.1;
  plain.failures[FailureCause::Rack].nodes = 4;
  plain.spares = 2;
  plain.repair = Seconds(2.0 * kHour);
  plain.correlated = 0.1;
  RunModel shrinks = plain, from_replicas = plain, swaps = plain, warned = plain, spared = plain;
  shrinks.replicas = 16;
  from_replicas.from_replicas = true;
  swaps.spare_replicas = 2;
  warned.failures[FailureCause::Host].planned = true;
  spared.failures[FailureCause::Software] = failing_model().failures[FailureCause::Host];
  spared.failures[FailureCause::SilentCorruption] = failing_model().failures[FailureCause::Host];
  spared.failures[FailureCause::SilentCorruption].silent = true;
  for (RunModel model : {plain, shrinks, from_replicas, swaps, warned, spared}) {
    double before = total(model.work).value();
    for (const double rarer : {16.0, 4.0, 2.0, 1.0}) {
      RunModel at = model;
      for (FailureProcess& process : at.failures) process.rate *= 1.0 / rarer;
      const double wall = mean_wall(at);
      EXPECT_GT(wall, before) << rarer;
      before = wall;
    }
  }
}

TEST(RunSimulation, TheNumberOfThreadsDoesNotMatter) {
  RunModel model = failing_model();
  model.rate_spread = 0.5;
  model.step_low = 0.9;
  model.step_high = 1.2;
  const RunStatistics one = simulate_runs(model, {.runs = 64, .seed = 7, .threads = 1});
  const RunStatistics two = simulate_runs(model, {.runs = 64, .seed = 7, .threads = 2});
  EXPECT_EQ(one.mean, two.mean);
  EXPECT_EQ(one.wall.p10, two.wall.p10);
  EXPECT_EQ(one.wall.p90, two.wall.p90);
  EXPECT_NE(one.mean, simulate_runs(model, {.runs = 64, .seed = 8}).mean);
}

// The step time's 80 % interval is that of the days where nothing else is uncertain.
TEST(RunSimulation, TheErrorOfTheStepIsThatOfTheRun) {
  RunModel model = quiet_model();
  model.startup = model.checkpoint.stall = model.checkpoint.safe = model.checkpoint.stored =
      Seconds();
  model.step_low = 0.9;
  model.step_high = 1.2;
  // Evaluations are no steps.
  const double evaluation = 0.1;
  const RunStatistics all = simulate_runs(model, {.runs = 1001});
  const double work = model.total_work().value();
  EXPECT_NEAR(all.wall.p10 / work, evaluation + (1.0 - evaluation) * 0.9, 1e-3);
  EXPECT_NEAR(all.wall.p50 / work, 1.0, 1e-9);
  EXPECT_NEAR(all.wall.p90 / work, evaluation + (1.0 - evaluation) * 1.2, 1e-3);
}

TEST(RunSimulation, TheBestIntervalIsNearYoungsAndDalys) {
  RunModel model = failing_model();
  const Seconds mtbf = job_mtbf(model), stall = model.checkpoint.stall;
  EXPECT_DOUBLE_EQ(mtbf.value(), 3.0 * kHour);
  const Seconds daly = daly_interval(stall, mtbf);
  EXPECT_NEAR(young_interval(stall, mtbf).value(), 657.3, 0.1);
  EXPECT_NEAR(daly.value(), 657.3 * (1.0 + 0.03043 / 3.0 + 0.000926 / 9.0) - 20.0, 0.1);
  const Seconds best = best_interval(model, {.runs = 100}, Seconds(1));
  EXPECT_NEAR(best / daly, 1.0, 0.3);
  model.interval = best;
  const double at_best = mean_wall(model);
  model.interval = daly;
  EXPECT_NEAR(at_best / mean_wall(model), 1.0, 1e-3);
}

// Whatever failures chance draws: the best interval is known to a few per cent, and is Daly's where
// hardly any run has a failure.
TEST(RunSimulation, TheBestIntervalDoesNotDependOnChance) {
  RunModel model = failing_model();
  const double daly = daly_interval(model.checkpoint.stall, job_mtbf(model)).value();
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    const Seconds best = best_interval(model, {.runs = 100, .seed = seed}, Seconds(1));
    EXPECT_NEAR(best.value() / daly, 1.0, 0.06) << seed;
  }
  model.failures[FailureCause::Host].rate = Hertz(1.0 / (1e5 * kHour));
  const Seconds rare = daly_interval(model.checkpoint.stall, job_mtbf(model));
  EXPECT_EQ(best_interval(model, {.runs = 100}, Seconds(1)), rare);
}

// A fleet that gets better fails less often than at the beginning of its run.
TEST(RunSimulation, TheTimeBetweenFailuresIsThatOfTheWholeRun) {
  RunModel model = failing_model();
  FailureProcess& hosts = model.failures[FailureCause::Host];
  hosts.shape = 0.75;
  hosts.age = Seconds(72.0 * kHour);
  const RunStatistics all = simulate_runs(model, {.runs = 200});
  const double expected = model.total_work() / job_mtbf(model);
  // Failures go on while the run is delayed.
  EXPECT_GT(all.by_cause[FailureCause::Host], expected);
  EXPECT_NEAR(all.by_cause[FailureCause::Host] / expected, all.mean_wall() / model.total_work(),
              0.05);
}

// Only failures that take all copies go back to the store.
TEST(RunSimulation, CopiesInHostMemorySaveWorkFromSingleFailures) {
  RunModel model = failing_model();
  model.interval = Seconds(60);
  model.checkpoint.stall = Seconds();
  model.checkpoint.safe = Seconds(5);
  model.checkpoint.stored = Seconds(5);
  model.checkpoint.stored_every = 60;
  const double lost = simulate_runs(model, {.runs = 50}).mean[RunPart::LostWork].value();
  model.correlated = 1.0;
  const double lost_all = simulate_runs(model, {.runs = 50}).mean[RunPart::LostWork].value();
  const double failures = 1000.0 / 3.0;
  EXPECT_NEAR(lost / failures, 35.0, 5.0) << "half an interval and the time to copy";
  EXPECT_NEAR(lost_all / failures, 0.5 * kHour, 0.2 * kHour);
}

// Hosts that compute wrong results every 20 hours.
RunModel corrupted_model(Seconds detection) {
  RunModel model = quiet_model();
  FailureProcess& silent = model.failures[FailureCause::SilentCorruption];
  silent.rate = Hertz(1.0 / (20.0 * kHour));
  silent.replaced = 0.0;
  silent.silent = true;
  silent.detection = detection;
  return model;
}

// Hosts keep only their last copies, which hold wrong results once corruption goes unnoticed for
// longer than the time between them: the run goes back to the store, half of its interval there and
// the detection.
TEST(RunSimulation, SilentCorruptionSpoilsCopiesInHostMemory) {
  const auto lost = [](double detection) {
    RunModel model = corrupted_model(Seconds(detection));
    model.interval = Seconds(60);
    model.checkpoint.stall = model.checkpoint.safe = Seconds(0.1);
    model.checkpoint.stored_every = 60;
    model.checkpoint.in_host_memory = true;
    const RunStatistics all = simulate_runs(model, {.runs = 200});
    return all.mean[RunPart::LostWork].value() / all.by_cause[FailureCause::SilentCorruption];
  };
  EXPECT_NEAR(lost(3600.0) / (3600.0 + 1800.0), 1.0, 0.05);
  EXPECT_NEAR(lost(0.01) / 30.0, 1.0, 0.1);
}

// A job with wrong results stops for failures as others do: each adds its detection and a restart
// to the time that is lost.
TEST(RunSimulation, FailuresInterruptWrongResults) {
  const Seconds unnoticed(10.0 * kHour), each(100.0 + 150.0 + 50.0);
  RunModel model = corrupted_model(unnoticed);
  model.failures[FailureCause::Host] = failing_model().failures[FailureCause::Host];
  const RunHistory run = simulate_history(model, {.runs = 1}, 0);
  int corrupted = 0, failures = 0;
  for (const RunInterruption& silent : run.interruptions) {
    if (silent.cause != FailureCause::SilentCorruption) continue;
    Seconds end = silent.time;
    for (const RunSpan& span : run.spans)
      if (span.begin == end && span.part == RunPart::LostWork) end = span.end;
    const auto within = std::ranges::count_if(run.interruptions, [&](const RunInterruption& other) {
      return other.cause == FailureCause::Host && other.time > silent.time && other.time < end;
    });
    EXPECT_NEAR((end - silent.time).value(),
                (unnoticed + static_cast<double>(within) * each).value(), 1e-3);
    failures += static_cast<int>(within);
    ++corrupted;
  }
  EXPECT_GT(corrupted, 10);
  EXPECT_GT(failures, corrupted);
}

// People look into wrong results once they are noticed: their time is no lost work.
TEST(RunSimulation, PeopleComeAfterWrongResultsAreNoticed) {
  RunModel model = corrupted_model(Seconds(2.0 * kHour));
  const RunStatistics without = simulate_runs(model, {.runs = 50});
  model.manual = 1.0;
  model.manual_time = Seconds(kHour);
  const RunStatistics with = simulate_runs(model, {.runs = 50});
  const double corruptions = with.by_cause[FailureCause::SilentCorruption];
  EXPECT_NEAR(with.mean[RunPart::Detection] / (corruptions * Seconds(kHour)), 1.0, 1e-9);
  EXPECT_EQ(without.mean[RunPart::Detection], Seconds());
  EXPECT_NEAR(with.mean[RunPart::LostWork] / without.mean[RunPart::LostWork], 1.0, 0.02);
}

// A job that waits for a node computes nothing that could be corrupted, and nothing of it stops.
TEST(RunSimulation, AWaitingJobIsNotInterrupted) {
  RunModel model = failing_model();
  FailureProcess& hosts = model.failures[FailureCause::Host];
  hosts.rate = Hertz(1.0 / (50.0 * kHour));
  hosts.replaced = 1.0;
  for (const FailureCause cause : {FailureCause::SilentCorruption, FailureCause::Software}) {
    FailureProcess& process = model.failures[cause];
    process.rate = Hertz(1.0 / (10.0 * kHour));
    process.replaced = 0.0;
    process.silent = cause == FailureCause::SilentCorruption;
  }
  const RunStatistics all = simulate_runs(model, {.runs = 200});
  const double waiting = all.mean[RunPart::Waiting] / all.mean_wall();
  ASSERT_GT(waiting, 0.2);
  const double computing = (all.mean_wall() - all.mean[RunPart::Waiting]).value() / (10.0 * kHour);
  EXPECT_NEAR(all.by_cause[FailureCause::Software] / computing, 1.0, 0.05);
  EXPECT_NEAR(all.by_cause[FailureCause::SilentCorruption] / computing, 1.0, 0.05);
}

// What is written when a failure comes is no checkpoint yet: without others such a failure loses
// all that was done since the last stop that saved its state to the end.
TEST(RunSimulation, AFailureDuringASaveLosesIt) {
  RunModel model = failing_model();
  model.interval = 2.0 * model.total_work();
  model.checkpoint.save = Seconds(0.5 * kHour);
  model.failures[FailureCause::Maintenance].rate = Hertz(1.0 / kHour);
  model.failures[FailureCause::Maintenance].planned = true;
  model.failures[FailureCause::Maintenance].replaced = 0.0;
  int hit = 0;
  const RunHistory run = simulate_history(model, {.runs = 1}, 0);
  for (std::size_t i = 1; i < run.interruptions.size(); ++i) {
    const RunInterruption &before = run.interruptions[i - 1], &failure = run.interruptions[i];
    if (failure.cause != FailureCause::Host || before.cause != FailureCause::Maintenance) continue;
    const double done = run.progress_at(before.time), saved = run.progress_at(failure.time);
    if (failure.time > before.time + model.checkpoint.save || done <= saved) continue;
    EXPECT_NEAR(failure.lost / run.running_time, done - saved, 1e-6);
    ++hit;
  }
  EXPECT_GT(hit, 10);
}

// Of failures that lose no work the formulas know nothing.
TEST(RunSimulation, TheBestIntervalOfReplicasIsNearDalys) {
  RunModel model = failing_model();
  model.from_replicas = true;
  model.correlated = 0.2;
  const double best = best_interval(model, {.runs = 200}, Seconds(1)).value();
  const double daly = daly_interval(model.checkpoint.stall, job_mtbf(model, true)).value();
  EXPECT_NEAR(best / daly, 1.0, 0.3);
  EXPECT_NEAR(job_mtbf(model, true) / job_mtbf(model), 5.0, 1e-9);
}

// States of other replicas lose neither work nor time for the store.
TEST(RunSimulation, ReplicasRecoverWithoutTheLastCheckpoint) {
  RunModel model = failing_model();
  const double from_store = mean_wall(model);
  model.from_replicas = true;
  model.load_replica = Seconds(10);
  const RunStatistics all = simulate_runs(model, {.runs = 50});
  EXPECT_EQ(all.mean[RunPart::LostWork], Seconds());
  EXPECT_LT(all.mean_wall().value(), from_store);
  // Each failure takes 100 s to detect, 150 s to restart and 10 s to copy.
  const double failures = all.by_cause[FailureCause::Host];
  EXPECT_NEAR((all.mean[RunPart::Detection] + all.mean[RunPart::Restart]).value() / failures, 260.0,
              5.0);
  model.correlated = 1.0;
  EXPECT_GT(simulate_runs(model, {.runs = 50}).mean[RunPart::LostWork], Seconds())
      << "failures of several nodes at once may take all copies";
}

// 16 replicas of a node each, one node without a spare for 20 hours in a mean of 30: the run waits,
// or runs at 15/16 of its speed.
TEST(RunSimulation, ARunThatShrinksNeedNotWait) {
  RunModel waiting = failing_model();
  FailureProcess& hosts = waiting.failures[FailureCause::Host];
  hosts.rate = Hertz(1.0 / (30.0 * kHour));
  hosts.replaced = 1.0;
  RunModel shrinking = waiting;
  shrinking.replicas = 16;
  const RunStatistics wait = simulate_runs(waiting, {.runs = 100}),
                      shrink = simulate_runs(shrinking, {.runs = 100});
  EXPECT_GT(wait.mean[RunPart::Waiting].value(), 300.0 * kHour);
  // Twenty of thirty hours lack a node: a sixteenth of the speed for that share, and more for two.
  const double share = shrink.mean[RunPart::Waiting].value() / (1000.0 * kHour);
  EXPECT_GT(share, 0.5 * 20.0 / 30.0 / 16.0);
  EXPECT_LT(share, 1.5 * 20.0 / 30.0 / 16.0);
  EXPECT_LT(shrink.mean_wall(), 0.8 * wait.mean_wall());
  for (std::int64_t i = 0; i < 5; ++i) {
    const RunOutcome run = simulate_run(shrinking, {.runs = 5}, i);
    EXPECT_NEAR(total(run.times) / run.wall, 1.0, 1e-9);
  }
}

// The speed that the planner gives counts in place of the proportional one.
TEST(RunSimulation, ARunShrinksToThePlannersSpeed) {
  RunModel model = failing_model();
  FailureProcess& hosts = model.failures[FailureCause::Host];
  hosts.rate = Hertz(1.0 / (30.0 * kHour));
  hosts.replaced = 1.0;
  model.replicas = 16;
  const auto waiting = [&](std::vector<double> speeds) {
    model.shrunk_speeds = std::move(speeds);
    return simulate_runs(model, {.runs = 50}).mean[RunPart::Waiting];
  };
  const Seconds proportional = waiting({});
  EXPECT_EQ(waiting({15.0 / 16.0, 14.0 / 16.0}), proportional);
  EXPECT_GT(waiting({0.5, 0.25}), 4.0 * proportional);
  EXPECT_LT(waiting({1.0, 1.0, 1.0}), 0.1 * proportional);
}

// Eight replicas of two nodes whose hosts fail, each of which needs another node.
RunModel model_of_replicas(std::int64_t spare_replicas, std::int64_t copies) {
  RunSpec spec;
  spec.checkpoint.store_write = spec.checkpoint.store_read = BytesPerSecond(1e9);
  spec.checkpoint.interval = Seconds(kHour);
  spec.recovery.detection = Seconds(100);
  spec.recovery.restart = Seconds(600);
  spec.recovery.repair = Seconds(10.0 * kHour);
  spec.recovery.spares = 0.5;
  spec.recovery.spare_replicas = spare_replicas;
  spec.recovery.swap = Seconds(20);
  spec.fleet.failures[FailureCause::Host].per_1000_node_days = 30.0;
  spec.fleet.failures[FailureCause::Host].replaced = 1.0;
  return run_model(spec, {{1e5, 1e6, Seconds(36)}}, {16, Bytes(6e10), 8, copies});
}

// With spares enough a failure costs its detection and the swap, and no work.
TEST(RunSimulation, SpareReplicasLoseNoWork) {
  const RunStatistics runs = simulate_runs(model_of_replicas(1'000, 8), {.runs = 40});
  const double hosts = runs.by_cause[FailureCause::Host];
  ASSERT_GT(hosts, 10.0);
  EXPECT_EQ(runs.mean[RunPart::LostWork], Seconds());
  EXPECT_EQ(runs.mean[RunPart::Waiting], Seconds());
  // A failure during the detection of another begins it anew, which is rare.
  EXPECT_NEAR(runs.mean[RunPart::Restart] / (hosts * Seconds(20)), 1.0, 0.01);
  EXPECT_NEAR(runs.mean[RunPart::Detection] / (hosts * Seconds(100)), 1.0, 0.01);
}

TEST(RunSimulation, MoreSpareReplicasNeverHurt) {
  Seconds before = simulate_runs(model_of_replicas(0, 8), {.runs = 40}).mean_wall();
  for (const std::int64_t spares : {1, 2, 4, 8}) {
    const RunStatistics runs = simulate_runs(model_of_replicas(spares, 8), {.runs = 40});
    EXPECT_LE(runs.mean_wall(), before) << spares;
    before = runs.mean_wall();
    const RunOutcome run = simulate_run(model_of_replicas(spares, 8), {.runs = 40}, 3);
    EXPECT_NEAR(total(run.times) / run.wall, 1.0, 1e-9);
  }
}

// Nothing is saved, and one replica is spare: the first failure loses nothing, and the second,
// which only finds a spare node, all that was done since the beginning.
TEST(RunSimulation, ASwapIsNoCheckpoint) {
  RunModel model = model_of_replicas(1, 8);
  model.interval = 2.0 * model.total_work();
  model.repair = Seconds(1e12);
  const RunHistory run = simulate_history(model, {.runs = 1}, 0);
  ASSERT_GE(run.interruptions.size(), 2U);
  EXPECT_EQ(run.interruptions[0].lost, Seconds());
  const RunInterruption& second = run.interruptions[1];
  const double done = run.progress_at(second.time - Seconds(1e-3));
  ASSERT_GT(done, run.progress_at(run.interruptions[0].time + Seconds(200)));
  EXPECT_NEAR(second.lost / (done * run.running_time), 1.0, 1e-6);
}

// A planned stop saves the states also while a spare replica comes in: what failures lose later was
// done after the stop.
TEST(RunSimulation, APlannedStopDuringASwapSavesTheStates) {
  RunModel model = model_of_replicas(1'000, 8);
  model.interval = 2.0 * model.total_work();
  model.swap = Seconds(2.0 * kHour);
  const auto add = [&](FailureCause cause, double hours) -> FailureProcess& {
    model.failures[cause].rate = Hertz(1.0 / (hours * kHour));
    model.failures[cause].replaced = 0.0;
    return model.failures[cause];
  };
  model.failures[FailureCause::Host].rate = Hertz(1.0 / (8.0 * kHour));
  add(FailureCause::Maintenance, 5.0).planned = true;
  add(FailureCause::Software, 40.0);
  int hit = 0;
  for (std::int64_t index = 0; index < 5; ++index) {
    const RunHistory run = simulate_history(model, {.runs = 5}, index);
    for (std::size_t i = 2; i < run.interruptions.size(); ++i) {
      const RunInterruption &swap = run.interruptions[i - 2], &stop = run.interruptions[i - 1],
                            &failure = run.interruptions[i];
      const bool in_swap = swap.cause == FailureCause::Host &&
                           stop.cause == FailureCause::Maintenance &&
                           stop.time < swap.time + model.swap;
      if (!in_swap || failure.cause != FailureCause::Software) continue;
      if (failure.time < stop.time + model.checkpoint.save) continue;
      const double done = run.progress_at(failure.time - Seconds(1e-3));
      EXPECT_NEAR(failure.lost / run.running_time, done - run.progress_at(stop.time), 1e-6);
      ++hit;
    }
  }
  EXPECT_GT(hit, 3);
}

// Replicas that share the states cannot give those of the node that failed.
TEST(RunSimulation, SpareReplicasOfSharedStatesAreSpareNodes) {
  const RunModel shared = model_of_replicas(2, 1);
  EXPECT_EQ(shared.spare_replicas, 0);
  EXPECT_EQ(shared.spares, 8 + 2 * 2);
  const RunModel whole = model_of_replicas(2, 8);
  EXPECT_EQ(whole.spare_replicas, 2);
  EXPECT_EQ(whole.spare_nodes(), shared.spare_nodes());
}

// Of eight replicas of two nodes each, seven fit on 14 and on 15 nodes, and six on 13 and on 12.
// What the planner gives for the first node holds beyond it.
TEST(RunSimulation, ReplicasThatFitOnTheRestGoOn) {
  RunModel model = model_of_replicas(0, 1);
  EXPECT_EQ(model.replicas_of_node, 0.5);
  model.spares = 0;
  model.replicas = 8;
  model.failures[FailureCause::Host].rate = Hertz(1.0 / (20.0 * kHour));
  model.repair = Seconds(1e12);
  // Nothing is repaired: the sixteenth failure ends the run, which has taken ever longer.
  const auto waiting_after = [&](std::size_t failures) {
    const RunHistory run = simulate_history(model, {.runs = 1}, 0);
    double running = 0.0, done = 0.0;
    for (const RunSpan& span : run.spans) {
      if (span.part != RunPart::Step || span.begin <= run.interruptions[failures - 1].time)
        continue;
      running = (span.end - span.begin).value();
      done = (span.to - span.from) * run.running_time.value();
      break;
    }
    return done / running;
  };
  EXPECT_NEAR(waiting_after(1), 7.0 / 8.0, 1e-9);
  EXPECT_NEAR(waiting_after(2), 7.0 / 8.0, 1e-9);
  EXPECT_NEAR(waiting_after(3), 6.0 / 8.0, 1e-9);
  EXPECT_NEAR(waiting_after(4), 6.0 / 8.0, 1e-9);
  model.shrunk_speeds = {0.8};
  EXPECT_NEAR(waiting_after(1), 0.8, 1e-9);
  EXPECT_NEAR(waiting_after(2), 0.8, 1e-9);
  EXPECT_NEAR(waiting_after(3), 6.0 / 8.0, 1e-9);
}

TEST(RunSimulation, ARunWithoutProgressIsGivenUp) {
  RunModel model = failing_model();
  model.interval = Seconds(100.0 * kHour);
  const RunStatistics all = simulate_runs(model, {.runs = 4});
  EXPECT_EQ(all.unfinished, 4);
  EXPECT_TRUE(std::isinf(all.wall.p10));
}

}  // namespace
}  // namespace shardwright::sim
