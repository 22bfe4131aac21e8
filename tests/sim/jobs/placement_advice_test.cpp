#include "sim/jobs/placement_advice.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "core/spec/profile_library.hpp"

namespace shardwright::sim {
namespace {

ClusterSpec cluster_with(const std::vector<FabricLevel>& levels) {
  ClusterSpec cluster = load_cluster("dgx-h100");
  cluster.fabric.levels = levels;
  return cluster;
}

struct Occupied {
  std::vector<NodeGroup> jobs;
  std::vector<std::int64_t> taken;
};

// Jobs on random nodes but the first.
Occupied any_jobs(std::int64_t nodes) {
  Occupied occupied;
  std::vector<std::int64_t> owners;
  for (std::int64_t node = 0; node < nodes; ++node)
    owners.push_back(node == 0 ? 3 : *rc::gen::inRange<std::int64_t>(0, 6));
  for (std::int64_t owner = 0; owner < 3; ++owner) {
    NodeGroup group;
    for (std::int64_t node = 0; node < nodes; ++node) {
      if (owners[static_cast<std::size_t>(node)] == owner) group.nodes.push_back(node);
    }
    occupied.taken.insert(occupied.taken.end(), group.nodes.begin(), group.nodes.end());
    group.leaves_cluster = *rc::gen::inRange(0, 4) == 0;
    if (!group.nodes.empty()) occupied.jobs.push_back(group);
  }
  return occupied;
}

// The fewest shared switches of all choices of free nodes.
std::int64_t fewest_shared(const ClusterSpec& cluster, std::int64_t nodes, std::int64_t needed,
                           const Occupied& occupied) {
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t chosen = 0; chosen < 1U << nodes; ++chosen) {
    if (std::popcount(chosen) != needed) continue;
    std::vector<std::int64_t> list;
    for (std::int64_t node = 0; node < nodes; ++node) {
      if ((chosen >> node & 1U) != 0) list.push_back(node);
    }
    const bool is_free = std::none_of(list.begin(), list.end(), [&](std::int64_t node) {
      return std::find(occupied.taken.begin(), occupied.taken.end(), node) != occupied.taken.end();
    });
    if (is_free) best = std::min(best, count_shared_switches(cluster, list, occupied.jobs));
  }
  return best;
}

void expect_free(const std::vector<std::int64_t>& nodes, const Occupied& occupied) {
  for (const std::int64_t node : nodes)
    RC_ASSERT(std::find(occupied.taken.begin(), occupied.taken.end(), node) ==
              occupied.taken.end());
}

RC_GTEST_PROP(PlacementAdvice, SharesTheFewestLinksBelowOneOversubscribedLevel, ()) {
  const std::int64_t nodes = 12;
  const ClusterSpec cluster =
      cluster_with({{*rc::gen::inRange<std::int64_t>(1, 5), 2.0, {}}, {nodes, 1.0, {}}});
  const Occupied occupied = any_jobs(nodes);
  const auto free = nodes - std::ssize(occupied.taken);
  const std::int64_t needed = *rc::gen::inRange<std::int64_t>(1, free + 1);
  const auto advice = advise_nodes(cluster, nodes, needed, occupied.jobs, occupied.taken);
  RC_ASSERT(advice.has_value());
  RC_ASSERT(std::ssize(*advice) == needed);
  expect_free(*advice, occupied);
  RC_ASSERT(count_shared_switches(cluster, *advice, occupied.jobs) ==
            fewest_shared(cluster, nodes, needed, occupied));
  RC_ASSERT(!advise_nodes(cluster, nodes, free + 1, occupied.jobs, occupied.taken));
}

RC_GTEST_PROP(PlacementAdvice, IsNearTheFewestSharedLinksBelowTwo, ()) {
  const std::int64_t nodes = 12;
  const ClusterSpec cluster = cluster_with(
      {{2, 2.0, {}}, {*rc::gen::element<std::int64_t>(4, 6), 2.0, {}}, {nodes, 1.0, {}}});
  const Occupied occupied = any_jobs(nodes);
  const auto free = nodes - std::ssize(occupied.taken);
  const std::int64_t needed = *rc::gen::inRange<std::int64_t>(1, free + 1);
  const auto advice = advise_nodes(cluster, nodes, needed, occupied.jobs, occupied.taken);
  RC_ASSERT(advice.has_value());
  expect_free(*advice, occupied);
  const std::int64_t shared = count_shared_switches(cluster, *advice, occupied.jobs);
  const std::int64_t fewest = fewest_shared(cluster, nodes, needed, occupied);
  RC_TAG(shared - fewest);
  RC_ASSERT(shared <= fewest + 1);
}

TEST(PlacementAdvice, FillsTheLeafWithTheFewestFreeNodesThatHoldTheJob) {
  const ClusterSpec cluster = cluster_with({{4, 2.0, {}}, {12, 1.0, {}}});
  const Occupied occupied{{{{0, 1}}, {{4}}}, {0, 1, 4}};
  EXPECT_EQ(advise_nodes(cluster, 12, 2, occupied.jobs, occupied.taken),
            (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(advise_nodes(cluster, 12, 4, occupied.jobs, occupied.taken),
            (std::vector<std::int64_t>{8, 9, 10, 11}));
}

}  // namespace
}  // namespace shardwright::sim
