#include "sim/jobs/jobs_simulation.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/lowering/lowering.hpp"
#include "sim/cost/collective_cost.hpp"
#include "sim/jobs/job_cluster.hpp"
#include "sim/step/flat_program.hpp"
#include "sim/step/full_replay.hpp"
#include "sim/step/lane_program.hpp"
#include "tests/sim/step/random_scenario.hpp"

namespace shardwright::sim {
namespace {

using fixtures::any_small_scenario;
using fixtures::small_scenario;

constexpr std::int64_t kLeaf = 4;

// Two leaves of four nodes whose uplinks are oversubscribed.
void put_on_leaves(Scenario& scenario, double oversubscription) {
  scenario.cluster.nodes = 2 * kLeaf;
  scenario.cluster.fabric.levels = {{kLeaf, oversubscription, microseconds(1.0)},
                                    {2 * kLeaf, 1.0, microseconds(1.0)}};
}

// A job whose two replicas, of a node each, reduce their gradients after all that they compute.
Scenario two_replicas(double oversubscription) {
  Scenario scenario = small_scenario(2, 8, 1);
  put_on_leaves(scenario, oversubscription);
  scenario.plan.overlap.grad_reduce = scenario.plan.overlap.param_gather = false;
  return scenario;
}

TrainingJob job_on(const Scenario& scenario, std::vector<std::int64_t> nodes,
                   const std::string& name = "job") {
  return {.name = name, .scenario = scenario, .nodes = std::move(nodes), .start = {}};
}

// So many jobs, each with a node below each leaf.
JobSet jobs_across(const Scenario& scenario, std::int64_t count) {
  JobSet jobs;
  for (std::int64_t i = 0; i < count; ++i) {
    jobs.training.push_back(job_on(scenario, {i, kLeaf + i}));
  }
  return jobs;
}

StorageTraffic checkpoint_of(std::vector<std::int64_t> nodes, Bytes bytes) {
  StorageTraffic traffic;
  traffic.name = "checkpoint";
  traffic.nodes = std::move(nodes);
  traffic.bytes = bytes;
  return traffic;
}

FullReplay full_replay_of(const Scenario& scenario) {
  const Program program = lower(scenario.model, scenario.plan, scenario.stack);
  FullOptions options;
  options.contention = true;
  options.watched_ranks = {0};
  return replay_full(program, scenario.cluster, price(program, scenario.cluster, scenario.stack),
                     options);
}

const SharedLink& link_named(const JobsResult& result, const std::string& name) {
  const auto found = std::find_if(result.links.begin(), result.links.end(),
                                  [&](const SharedLink& link) { return link.name == name; });
  EXPECT_NE(found, result.links.end()) << name;
  return *found;
}

RC_GTEST_PROP(JobsSimulation, AJobWithoutOthersMakesTheStepOfTheFullLevel, ()) {
  const Scenario scenario =
      any_small_scenario(fixtures::one_of<std::string>({"dgx-h100", "a100-leaf-spine-2to1"}));
  const std::int64_t nodes = count_nics(scenario.plan, scenario.cluster).nodes;
  JobSet jobs;
  jobs.steps = 1;
  jobs.training.push_back(job_on(scenario, {}));
  for (std::int64_t node = 0; node < nodes; ++node) jobs.training[0].nodes.push_back(node);
  const JobsResult result = simulate_jobs(jobs);
  RC_ASSERT(result.jobs[0].alone == full_replay_of(scenario).step);
  RC_ASSERT(result.jobs[0].mean == result.jobs[0].alone);
  RC_ASSERT(result.links.empty());
}

TEST(JobsSimulation, AJobOnOtherNodesOfANonBlockingFabricChangesNothing) {
  for (const std::int64_t steps : {1, 4}) {
    JobSet jobs = jobs_across(two_replicas(1.0), 2);
    jobs.steps = steps;
    const JobsResult result = simulate_jobs(jobs);
    EXPECT_TRUE(result.links.empty());
    for (const JobTimes& job : result.jobs) {
      if (steps == 1)
        EXPECT_EQ(job.mean, job.alone);  // to the bit
      else
        EXPECT_NEAR(job.slowdown(), 1.0, 1e-12);
    }
  }
}

struct Reduction {
  // The time without others, and the rate over the uplink that it then takes.
  Seconds time;
  BytesPerSecond rate;

  Bytes bytes() const { return rate * time; }
};

// What a job of two replicas sends from one to the other in a step, one after the other.
std::vector<Reduction> reductions_of(const Scenario& scenario) {
  const Program program = lower(scenario.model, scenario.plan, scenario.stack);
  const LanePrograms lanes =
      sort_into_lanes(program, flatten(program, price(program, scenario.cluster, scenario.stack)));
  std::vector<Reduction> reductions;
  for (const Lane& lane : lanes.stages[0].lanes) {
    for (const LaneOp& op : lane.ops) {
      if (op.transfer == kNone) continue;
      const TransferKind& kind = lanes.transfers[op.transfer];
      if (place(kind.group, scenario.plan, scenario.cluster).nodes < 2) continue;
      const Bytes of_rank = kind.bytes * bus_factor(kind.kind, 2);
      reductions.push_back({Seconds(kind.duration), of_rank * 8.0 / Seconds(kind.duration)});
    }
  }
  return reductions;
}

// Each of so many equal jobs gets as large a part of the uplink, so that a reduction that alone
// takes the share u of it takes max(1, jobs u) times as long. All of the step's reductions are
// exposed.
TEST(JobsSimulation, EqualJobsShareAnUplinkEqually) {
  const Scenario scenario = two_replicas(16.0);
  const NicSpec& nic = scenario.cluster.node.nic;
  const BytesPerSecond uplink = nic.bandwidth * (nic.efficiency * 8.0 * kLeaf / 16.0);
  Scenario alone = scenario;
  const std::vector<std::int64_t> nodes = {0, kLeaf};
  alone.cluster = cluster_of_job(alone.cluster, nodes);
  const std::vector<Reduction> reductions = reductions_of(alone);
  ASSERT_FALSE(reductions.empty());
  const Seconds step = full_replay_of(alone).step;
  for (const std::int64_t count : {2, 3, 4}) {
    Seconds longer;
    for (const Reduction& each : reductions) {
      const double share = each.rate / uplink;
      EXPECT_LE(share, 1.0);
      longer += each.time * (std::max(1.0, static_cast<double>(count) * share) - 1.0);
    }
    EXPECT_GT(longer, Seconds());
    for (const JobTimes& job : simulate_jobs(jobs_across(scenario, count)).jobs) {
      EXPECT_EQ(job.alone, step);
      EXPECT_NEAR((job.mean - job.alone) / longer, 1.0, 1e-6);
    }
  }
}

TEST(JobsSimulation, SharingLosesNoBytes) {
  const Scenario scenario = two_replicas(16.0);
  Scenario alone = scenario;
  const std::vector<std::int64_t> nodes = {0, kLeaf};
  alone.cluster = cluster_of_job(alone.cluster, nodes);
  Bytes of_step;
  for (const Reduction& each : reductions_of(alone)) of_step += each.bytes();
  ASSERT_GT(of_step, Bytes());
  for (const std::int64_t count : {2, 3}) {
    const JobsResult result = simulate_jobs(jobs_across(scenario, count));
    for (const char* direction : {"up", "down"}) {
      const SharedLink& link = link_named(result, fmt::format("level 1, switch 0, {}", direction));
      ASSERT_EQ(std::ssize(link.shares), count);
      for (const LinkShare& share : link.shares) {
        const double steps = static_cast<double>(result.jobs[share.job].count);
        EXPECT_NEAR((share.rate * result.simulated) / (of_step * steps), 1.0, 1e-6);
      }
      EXPECT_LE(link.load() / link.capacity, 1.0 + 1e-9);
    }
  }
}

TEST(JobsSimulation, MoreBandwidthNeverSlowsAJobDown) {
  Seconds before = Seconds(1e9);
  for (const double oversubscription : {64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0}) {
    const JobsResult result = simulate_jobs(jobs_across(two_replicas(oversubscription), 3));
    for (const JobTimes& job : result.jobs) {
      EXPECT_GE(job.mean, job.alone * (1.0 - 1e-12));
      EXPECT_LE(job.mean, before * (1.0 + 1e-12));
    }
    before = result.jobs[0].mean;
  }
}

// Each node writes to the store above all switches. An uplink of a quarter of the NICs of its leaf
// carries what one node sends: two nodes that write at once take twice the time of one.
TEST(JobsSimulation, BurstsTakeTheTimeThatTheLinksGiveThem) {
  Scenario scenario = two_replicas(4.0);
  JobSet jobs;
  jobs.training.push_back(job_on(scenario, {2, 3}));  // below one leaf
  const BytesPerSecond node = scenario.cluster.node.nic.bandwidth *
                              (scenario.cluster.node.nic.efficiency *
                               static_cast<double>(scenario.cluster.node.nic.per_node));
  const Bytes bytes = node * Seconds(0.5);
  jobs.storage.push_back(checkpoint_of({0}, bytes));
  jobs.storage.push_back(checkpoint_of({1}, bytes));
  const JobsResult result = simulate_jobs(jobs);
  for (const std::size_t storage : {1, 2}) {
    EXPECT_NEAR(result.jobs[storage].alone.value(), 0.5, 1e-9);
    EXPECT_NEAR(result.jobs[storage].mean.value(), 1.0, 1e-9);
  }
  EXPECT_NEAR(result.jobs[0].slowdown(), 1.0, 1e-12);
  // A limit of its own leaves the link to the other.
  jobs.storage[0].bandwidth = node / 4.0;
  const JobsResult limited = simulate_jobs(jobs);
  EXPECT_NEAR(limited.jobs[1].mean.value(), 2.0, 1e-9);
  EXPECT_NEAR(limited.jobs[2].mean.value(), 0.5 / 0.75, 1e-9);
}

TEST(JobsSimulation, ServersLimitTheTrafficOfTheirNodes) {
  Scenario scenario = two_replicas(1.0);
  JobSet jobs;
  jobs.training.push_back(job_on(scenario, {2, 3}));
  const BytesPerSecond node = scenario.cluster.node.nic.bandwidth *
                              (scenario.cluster.node.nic.efficiency *
                               static_cast<double>(scenario.cluster.node.nic.per_node));
  for (const StorageDirection direction : {StorageDirection::Write, StorageDirection::Read}) {
    jobs.storage = {checkpoint_of({0, 1}, node * Seconds(2.0))};
    jobs.storage[0].direction = direction;
    jobs.storage[0].servers = {6};
    EXPECT_NEAR(simulate_jobs(jobs).jobs[1].alone.value(), 2.0, 1e-9);
    jobs.storage[0].servers = {6, 7};
    EXPECT_NEAR(simulate_jobs(jobs).jobs[1].alone.value(), 1.0, 1e-9);
  }
}

// Checkpoints go through the ports of the job that writes them.
TEST(JobsSimulation, StorageSlowsTheJobWhoseNodesItUses) {
  JobSet jobs = jobs_across(two_replicas(1.0), 2);
  jobs.storage.push_back(checkpoint_of(jobs.training[0].nodes, gigabytes(1000)));
  const JobsResult result = simulate_jobs(jobs);
  EXPECT_GT(result.jobs[0].slowdown(), 1.001);
  EXPECT_NEAR(result.jobs[1].slowdown(), 1.0, 1e-12);
  EXPECT_EQ(link_named(result, "node 0, out").shares.size(), 2U);
}

TEST(JobsSimulation, StepsCountOnceAllJobsHaveStarted) {
  JobSet jobs = jobs_across(two_replicas(16.0), 2);
  const JobsResult at_once = simulate_jobs(jobs);
  jobs.training[1].start = at_once.jobs[0].alone * 2.02;
  const JobsResult later = simulate_jobs(jobs);
  for (const JobTimes& job : later.jobs) EXPECT_GE(job.count, jobs.steps);
  EXPECT_GT(later.jobs[0].slowdown(), 1.0);
  EXPECT_LE(later.jobs[0].mean, at_once.jobs[0].mean * (1.0 + 1e-9));
}

TEST(JobsSimulation, AJobOfOneNodeIsDoneWithOneStep) {
  JobSet jobs = jobs_across(two_replicas(16.0), 2);
  Scenario single = two_replicas(16.0);
  single.plan.dp = 1;
  jobs.training.push_back(job_on(single, {2}));
  const JobsResult result = simulate_jobs(jobs);
  EXPECT_EQ(result.jobs[2].mean, result.jobs[2].alone);
  EXPECT_EQ(result.jobs[2].count, 1);
}

// Leaves that reduce for one job: the second job below them makes the steps of a fabric whose
// switches do not reduce, and the first one those of a fabric that does.
TEST(JobsSimulation, JobsWithoutReductionsInSwitchesFallBack) {
  Scenario scenario = two_replicas(1.0);
  scenario.plan.dp = 4;
  scenario.plan.global_batch = 32;
  scenario.plan.zero_stage = 0;
  scenario.cluster.node.scale_up.in_network_reduction = false;
  const auto mean_of = [&](bool reduces, std::int64_t jobs_per_switch) {
    scenario.cluster.fabric.in_network_reduction = reduces;
    scenario.cluster.fabric.reduction_jobs_per_switch = jobs_per_switch;
    JobSet jobs;
    jobs.training = {job_on(scenario, {0, 1, 4, 5}), job_on(scenario, {2, 3, 6, 7})};
    return simulate_jobs(jobs);
  };
  const JobsResult limited = mean_of(true, 1), free = mean_of(true, 0), none = mean_of(false, 0);
  EXPECT_EQ(limited.without_reductions, std::vector<std::size_t>{1});
  EXPECT_TRUE(free.without_reductions.empty());
  EXPECT_LT(free.jobs[0].mean, none.jobs[0].mean * (1.0 - 1e-6));
  EXPECT_NEAR(limited.jobs[0].mean / free.jobs[0].mean, 1.0, 1e-12);
  EXPECT_NEAR(limited.jobs[1].mean / none.jobs[1].mean, 1.0, 1e-12);
  EXPECT_EQ(limited.jobs[1].alone, free.jobs[1].alone);
}

TEST(JobCluster, LeavesReduceForTheJobsThatComeFirst) {
  ClusterSpec cluster = two_replicas(1.0).cluster;
  cluster.fabric.in_network_reduction = true;
  const std::vector<std::vector<std::int64_t>> nodes = {{0, 4}, {1, 2}, {5, 6}, {3}, {7, 8}};
  const std::vector<std::span<const std::int64_t>> jobs(nodes.begin(), nodes.end());
  using Served = std::vector<bool>;
  EXPECT_EQ(share_out_reductions(cluster, jobs), Served(5, true));
  cluster.fabric.reduction_jobs_per_switch = 1;
  EXPECT_EQ(share_out_reductions(cluster, jobs), (Served{true, false, false, true, false}));
  cluster.fabric.reduction_jobs_per_switch = 2;
  EXPECT_EQ(share_out_reductions(cluster, jobs), (Served{true, true, true, true, false}));
}

TEST(JobsSimulation, StopsWhenAsked) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(simulate_jobs(jobs_across(two_replicas(16.0), 2), {{}, stop.get_token()}).cancelled);
}

TEST(JobCluster, HasTheShareOfTheUplinksThatItsNodesFind) {
  Scenario scenario = two_replicas(8.0);
  const auto level_of = [&](std::vector<std::int64_t> nodes) {
    return cluster_of_job(scenario.cluster, nodes).fabric.levels[0];
  };
  // All nodes of a leaf, or nodes of one leaf alone: the level as it is.
  EXPECT_EQ(level_of({0, 1, 2, 3, 4, 5}), scenario.cluster.fabric.levels[0]);
  EXPECT_EQ(level_of({1, 3}), scenario.cluster.fabric.levels[0]);
  EXPECT_EQ(level_of({0, 4}).nodes, 1);
  EXPECT_EQ(level_of({0, 4}).oversubscription, 2.0);
  EXPECT_EQ(level_of({0, 1, 4, 5}).nodes, 2);
  EXPECT_EQ(level_of({0, 1, 4, 5}).oversubscription, 4.0);
  EXPECT_EQ(level_of({0, 1, 2, 4}).nodes, 3);
  EXPECT_EQ(level_of({0, 4, 5, 6}).nodes, 1);
}

}  // namespace
}  // namespace shardwright::sim
