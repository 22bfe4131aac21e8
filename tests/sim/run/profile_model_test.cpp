// What a run profile makes of a run: failures and their notice, input and checkpoints.
#include "sim/run/profile_model.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/run/run_simulation.hpp"

namespace shardwright::sim {
namespace {

constexpr double kSecondsOfHour = 3600.0;

RunSpec spot_spec(double per_1000_node_days, double notice_s) {
  RunSpec spec;
  spec.checkpoint.store_write = spec.checkpoint.store_read = BytesPerSecond(1e9);
  spec.checkpoint.interval = Seconds(kSecondsOfHour);
  spec.recovery.detection = Seconds(100);
  spec.recovery.repair = Seconds(kSecondsOfHour);
  spec.recovery.spares = 1.0;
  FailureSpec& preemption = spec.fleet.failures[FailureCause::Preemption];
  preemption.per_1000_node_days = per_1000_node_days;
  preemption.notice = Seconds(notice_s);
  return spec;
}

// A rack of four nodes: four spare nodes take its place, three do not; one node of the rack has the
// copy in host memory that another one lost, and a job of two nodes loses no more than these.
TEST(ProfileModel, AFailureOfARackStopsAllOfItsNodes) {
  RunSpec spec = spot_spec(0.0, 0.0);
  spec.checkpoint.kind = CheckpointKind::InMemory;
  spec.checkpoint.interval = Seconds(60);
  spec.checkpoint.written_every = 60;
  spec.fleet.failures[FailureCause::Rack].per_1000_node_days = 200.0;
  const auto runs = [&](std::int64_t nodes, double spares, std::int64_t of_job = 20) {
    RunSpec own = spec;
    own.fleet.failures[FailureCause::Rack].nodes = nodes;
    own.recovery.spares = spares / static_cast<double>(of_job);
    own.recovery.repair = Seconds(0.1 * kSecondsOfHour);
    return simulate_runs(run_model(own, {{1e5, 1e6, Seconds(36)}}, {of_job, Bytes(6e10), 4, 1}),
                         {.runs = 20});
  };
  const auto lost = [](const RunStatistics& of) {
    return of.mean[RunPart::LostWork] / of.by_cause[FailureCause::Rack];
  };
  EXPECT_EQ(runs(1, 4).mean[RunPart::Waiting], Seconds());
  EXPECT_GT(runs(4, 3).mean[RunPart::Waiting], Seconds());
  EXPECT_LT(runs(4, 4).mean[RunPart::Waiting], 0.05 * runs(4, 3).mean[RunPart::Waiting]);
  EXPECT_LT(lost(runs(1, 4)), Seconds(60));
  EXPECT_NEAR(lost(runs(4, 4)).value(), 0.5 * kSecondsOfHour, 0.2 * kSecondsOfHour);
  EXPECT_EQ(runs(4, 2, 2).mean[RunPart::Waiting], Seconds());
}

TEST(ProfileModel, RatesOfAllCausesFollowTheirRatio) {
  RunSpec spec = spot_spec(200.0, 0.0);
  spec.fleet.rate = 0.5;
  const RunModel half = run_model(spec, {{1e3, 1e6, Seconds(36)}}, {10, Bytes(6e10), 4, 1});
  const RunModel whole =
      run_model(spot_spec(100.0, 0.0), {{1e3, 1e6, Seconds(36)}}, {10, Bytes(6e10), 4, 1});
  EXPECT_EQ(job_mtbf(half), job_mtbf(whole));
}

// 60 GB at 1 GB/s: a minute. The run of 1,000 hours meets the same preemptions, whatever their
// notice.
TEST(ProfileModel, NoticeOfAPreemptionSavesWhatCanBeSaved) {
  const auto outcome = [](double rate, double notice) {
    const RunModel model =
        run_model(spot_spec(rate, notice), {{1e5, 1e6, Seconds(36)}}, {10, Bytes(6e10), 4, 1});
    return simulate_runs(model, {.runs = 50});
  };
  const RunStatistics none = outcome(1000.0, 0.0), short_one = outcome(1000.0, 59.0),
                      enough = outcome(1000.0, 60.0);
  EXPECT_EQ(enough.mean[RunPart::LostWork], Seconds());
  EXPECT_EQ(enough.mean[RunPart::Detection], Seconds());
  EXPECT_EQ(short_one.mean[RunPart::Detection], Seconds());
  EXPECT_GT(none.mean[RunPart::Detection], Seconds());
  EXPECT_LT(enough.mean_wall(), short_one.mean_wall());
  EXPECT_LT(short_one.mean_wall(), none.mean_wall());
  // Half an hour is lost on average at a preemption without one.
  EXPECT_NEAR(none.mean[RunPart::LostWork] / none.by_cause[FailureCause::Preemption] /
                  Seconds(0.5 * kSecondsOfHour),
              1.0, 0.1);
  // More preemptions never help, and without them notice is nothing.
  Seconds before;
  for (const double rate : {0.0, 100.0, 300.0, 1000.0}) {
    const Seconds wall = outcome(rate, 120.0).mean_wall();
    EXPECT_GE(wall, before) << rate;
    before = wall;
  }
  EXPECT_EQ(outcome(0.0, 0.0).wall.p50, outcome(0.0, 120.0).wall.p50);
}

// Ten nodes, 4 bytes a token, two passes over 400 GB of which the nodes' disks hold half: a quarter
// of all reads comes from there.
TEST(ProfileModel, TheInputIsAsFastAsItsNarrowestPart) {
  InputSpec input;
  EXPECT_TRUE(std::isinf(input_supply(input, 10, false)));
  input.token = Bytes(4);
  input.dataset = gigabytes(400);
  input.store_read = gigabytes_per_second(1);
  EXPECT_DOUBLE_EQ(input_supply(input, 10, false), 0.25e9);
  // 20 workers read as many shards at once, or all five that there are.
  InputSpec sharded = input;
  sharded.shard_read = gigabytes_per_second(0.01);
  sharded.workers_per_node = 2;
  EXPECT_DOUBLE_EQ(input_supply(sharded, 10, false), 0.05e9);
  sharded.shards = 5;
  EXPECT_DOUBLE_EQ(input_supply(sharded, 10, false), 0.0125e9);
  sharded.shards = 1000;
  sharded.workers_per_node = 100;
  EXPECT_DOUBLE_EQ(input_supply(sharded, 10, false), 0.25e9) << "the store as a whole";
  input.cache = gigabytes(20);
  EXPECT_DOUBLE_EQ(input_supply(input, 10, false), 0.25e9 / 0.5);
  EXPECT_DOUBLE_EQ(input_supply(input, 10, true), 0.25e9) << "the first pass finds nothing";
  input.cache_read = gigabytes_per_second(0.001);
  EXPECT_DOUBLE_EQ(input_supply(input, 10, false), 0.01e9 / 4.0 / 0.5);
  input.worker_tokens_per_s = 1e4;
  input.workers_per_node = 8;
  EXPECT_DOUBLE_EQ(input_supply(input, 10, false), 8e5);
  input.tokens_per_s = 5e5;
  EXPECT_DOUBLE_EQ(input_supply(input, 10, false), 5e5);
}

// Two passes over a data set that the nodes keep: the store feeds the first at 0.7 of what the
// steps take.
TEST(ProfileModel, TheFirstPassWaitsForTheStore) {
  RunSpec run;
  run.input.token = Bytes(4);
  run.input.dataset = gigabytes(400);
  run.input.cache = gigabytes(40);
  run.input.store_read = BytesPerSecond(0.7 * 4e6);
  const StageSteps steps{2e5, 1e6, Seconds(1.0), 10};
  const Seconds first = 1e5 * Seconds(1.0 / 0.7 - 1.0);
  EXPECT_NEAR(work_of(run, {steps})[RunPart::InputStall] / first, 1.0, 1e-12);
  // In two stages, of which the first is the first pass.
  const StageSteps half{1e5, 1e6, Seconds(1.0), 10};
  EXPECT_NEAR(work_of(run, {half, half})[RunPart::InputStall] / first, 1.0, 1e-12);
  run.input.cache = Bytes();
  EXPECT_NEAR(work_of(run, {steps})[RunPart::InputStall] / first, 2.0, 1e-12);
}

TEST(ProfileModel, CheckpointsTakeTheNarrowestWay) {
  CheckpointSpec spec;
  spec.kind = CheckpointKind::Asynchronous;
  spec.fixed = Seconds(10);
  spec.node_bandwidth = gigabytes_per_second(1);
  spec.store_write = gigabytes_per_second(100);
  spec.store_read = gigabytes_per_second(50);
  spec.copy_fixed = Seconds(1);
  spec.copy_bandwidth = gigabytes_per_second(10);
  const CheckpointCost few = checkpoint_cost(spec, {20, gigabytes(2000)});
  EXPECT_DOUBLE_EQ(few.stall.value(), 1.0 + 100.0 / 10.0);
  EXPECT_DOUBLE_EQ((few.stored - few.stall).value(), 10.0 + 2000.0 / 20.0);
  const CheckpointCost many = checkpoint_cost(spec, {2000, gigabytes(2000)});
  EXPECT_DOUBLE_EQ((many.stored - many.stall).value(), 10.0 + 2000.0 / 100.0);
  EXPECT_DOUBLE_EQ(many.load.value(), 2000.0 / 50.0);
  EXPECT_DOUBLE_EQ(least_interval(many).value(), 30.0);
  spec.kind = CheckpointKind::Synchronous;
  EXPECT_DOUBLE_EQ(checkpoint_cost(spec, {2000, gigabytes(2000)}).stall.value(), 30.0);
}

}  // namespace
}  // namespace shardwright::sim
