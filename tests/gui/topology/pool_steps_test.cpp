#include "gui/topology/pool_steps.hpp"

#include <gtest/gtest.h>

#include "tests/gui/example_step.hpp"
#include "tests/gui/two_pools.hpp"

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

// What passes within nodes is that of the cluster of one pool where the pools are equal.
TEST(PoolSteps, LoadsOfEqualPoolsAreThoseOfOneCluster) {
  Scenario scenario = small_step().scenario;
  scenario.cluster.nodes = 2;
  scenario.cluster.name = "first";
  scenario.cluster.pools = {pool_like(scenario.cluster, "second")};
  scenario.plan.stage_pools = {"first", "second"};
  const auto parts = placed_steps(scenario, step_of(scenario).timeline.get());
  ASSERT_EQ(parts.size(), 2U);
  const auto whole = placed_steps(small_step().scenario, small_step().timeline.get());
  ASSERT_EQ(whole.size(), 1U);
  const std::vector<double> expected = bytes_by_accelerator(*whole.front());
  std::vector<double> found;
  for (const auto& part : parts) {
    EXPECT_EQ(part->map.first_rank(), static_cast<std::int64_t>(found.size()));
    EXPECT_EQ(part->groups.stage_of(0), part->stages.first);
    EXPECT_DOUBLE_EQ(part->seconds, whole.front()->seconds);
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

}  // namespace
}  // namespace shardwright::gui
