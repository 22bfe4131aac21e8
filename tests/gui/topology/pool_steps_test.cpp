#include "gui/topology/pool_steps.hpp"

#include <gtest/gtest.h>

#include "gui/timeline/span_text.hpp"
#include "tests/gui/example_step.hpp"
#include "tests/gui/two_pools.hpp"
#include "tests/thrown.hpp"

namespace shardwright::gui {
namespace {

using fixtures::small_step;
using fixtures::step_of;

// The bytes of the scale-up links by accelerator.
std::vector<double> bytes_by_accelerator(const PlacedStep& step) {
  const std::vector<Bytes> bytes = step.traffic.bytes(0.0, step.seconds);
  std::vector<double> sums(step.map.ranks(), 0.0);
  for (std::uint32_t gpu = 0; gpu < step.map.ranks(); ++gpu) {
    for (const sim::LinkIndex link : step.map.links_from(gpu))
      if (step.map.level(link) == LinkLevel::ScaleUp) sums[gpu] += bytes[link].value();
  }
  return sums;
}

Scenario on_two_pools(Scenario scenario) {
  scenario.cluster.nodes = 2;
  scenario.cluster.name = "first";
  scenario.cluster.pools = {pool_like(scenario.cluster, "second")};
  return scenario;
}

// What passes within nodes is that of the cluster of one pool where the pools are equal.
void expect_loads_of_one_cluster(const Scenario& scenario, const Scenario& one) {
  const auto parts = placed_steps(scenario, step_of(scenario).timeline.get());
  ASSERT_EQ(parts.size(), 2U);
  const auto whole = placed_steps(one, step_of(one).timeline.get());
  ASSERT_EQ(whole.size(), 1U);
  const std::vector<double> expected = bytes_by_accelerator(*whole.front());
  std::vector<double> found;
  for (const auto& part : parts) {
    EXPECT_EQ(part->map.first_rank(), static_cast<std::int64_t>(found.size()));
    EXPECT_EQ(part->groups.stage_of(0), part->stages.first);
    EXPECT_NEAR(part->seconds / whole.front()->seconds, 1.0, 1e-9);
    std::ranges::copy(bytes_by_accelerator(*part), std::back_inserter(found));
  }
  ASSERT_EQ(found.size(), expected.size());
  double all = 0.0;
  for (std::size_t gpu = 0; gpu < found.size(); ++gpu) {
    EXPECT_NEAR(found[gpu], expected[gpu], 1e-4 * expected[gpu]) << gpu;
    all += expected[gpu];
  }
  EXPECT_GT(all, 0.0);
}

TEST(PoolSteps, LoadsOfEqualPoolsAreThoseOfOneCluster) {
  Scenario stages = on_two_pools(small_step().scenario);
  stages.plan.stage_pools = {"first", "second"};
  expect_loads_of_one_cluster(stages, small_step().scenario);
  Scenario one = small_step().scenario;
  std::erase(one.plan.rank_order, Axis::Data);
  one.plan.rank_order.push_back(Axis::Data);
  Scenario replicas = on_two_pools(one);
  const std::int64_t half = one.plan.dp / 2, microbatches = one.plan.microbatches();
  replicas.plan.replica_pools = {{"first", half, microbatches}, {"second", half, microbatches}};
  expect_loads_of_one_cluster(replicas, one);
}

// The last stage of the last replicas alone is on the second pool, whose ranks are no plan by
// themselves. The timeline knows them.
TEST(PoolSteps, LinksOfStagesAndReplicasOnPoolsAreNotDrawn) {
  Scenario both = on_two_pools(small_step().scenario);
  Plan& plan = both.plan;
  ASSERT_EQ(plan.pp, 2);
  const std::int64_t half = plan.dp / 2, microbatches = plan.microbatches();
  plan.replica_pools = {{"first", half, microbatches},
                        {"", plan.dp - half, microbatches, {"first", "second"}}};
  EXPECT_NE(thrown_by([&] { placed_steps(both, nullptr); }).find("/plan/replica_pools"),
            std::string::npos);
  both.cluster.pools[0].accelerator.memory = gigabytes(1000);
  const RankLimits limits = limits_of(both);
  const auto ranks = static_cast<std::int32_t>(plan.world_size());
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    EXPECT_EQ(limits.of(rank).memory == gigabytes(1000), rank >= ranks * 3 / 4) << rank;
}

}  // namespace
}  // namespace shardwright::gui
