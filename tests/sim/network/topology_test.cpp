#include "sim/network/topology.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <numeric>
#include <random>

#include "core/base/error.hpp"

namespace shardwright::sim {
namespace {

using Random = std::mt19937_64;

// Nodes like a DGX H100 (8 accelerators on NVSwitch at 450 GB/s, 8 NICs of 50 GB/s).
ClusterSpec cluster(FabricKind kind, std::vector<FabricLevel> levels) {
  ClusterSpec spec;
  spec.name = "test";
  spec.node.accelerators = 8;
  spec.node.scale_up.bandwidth = gigabytes_per_second(450.0);
  spec.node.scale_up.domain = 8;
  spec.node.nic.per_node = 8;
  spec.node.nic.bandwidth = gigabytes_per_second(50.0);
  spec.node.host.accelerator_link = gigabytes_per_second(64.0);
  spec.fabric.kind = kind;
  spec.fabric.levels = std::move(levels);
  return spec;
}

ClusterSpec torus(std::vector<std::int64_t> sizes) {
  ClusterSpec spec = cluster(FabricKind::Torus, {});
  spec.node.accelerators = spec.node.nic.per_node = spec.node.scale_up.domain = 1;
  spec.fabric.torus = std::move(sizes);
  return spec;
}

std::int64_t product(const std::vector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<LinkIndex> route_of(const Topology& topology, std::uint32_t from, std::uint32_t to) {
  std::vector<LinkIndex> route;
  EXPECT_TRUE(topology.route(from, to, route));
  return route;
}

std::size_t count_kind(const Topology& topology, const std::vector<LinkIndex>& route,
                       VertexKind kind) {
  return static_cast<std::size_t>(std::count_if(route.begin(), route.end(), [&](LinkIndex link) {
    return topology.vertices()[topology.links()[link].to] == kind;
  }));
}

// True if it leads from vertex to vertex without a gap, and to no vertex twice.
bool is_path(const Topology& topology, std::uint32_t from, std::uint32_t to,
             const std::vector<LinkIndex>& route) {
  std::vector<VertexIndex> seen{from};
  for (const LinkIndex link : route) {
    if (topology.links()[link].from != seen.back()) return false;
    const VertexIndex next = topology.links()[link].to;
    if (std::find(seen.begin(), seen.end(), next) != seen.end()) return false;
    seen.push_back(next);
  }
  return seen.back() == to;
}

ClusterSpec any_cluster(Random& random) {
  switch (random() % 6) {
    case 0:
      return torus({static_cast<std::int64_t>(1 + random() % 5), 4, 3});
    case 1:
      return torus({static_cast<std::int64_t>(2 + random() % 5)});
    default:
      break;
  }
  const auto kind = random() % 2 == 0 ? FabricKind::RailOptimised : FabricKind::LeafSpine;
  ClusterSpec spec = cluster(kind, {{2, 1.0}, {4, 2.0}, {64, 1.0}});
  spec.node.scale_up.kind = static_cast<ScaleUpKind>(random() % 4);
  const std::int64_t nics[] = {1, 2, 4, 8, 16};
  spec.node.nic.per_node = nics[random() % 5];
  if (random() % 3 == 0) spec.node.scale_up.domain = 16;
  if (random() % 4 == 0) spec.fabric.levels.clear();
  return spec;
}

TEST(Topology, EveryRouteIsASimplePath) {
  EXPECT_TRUE(rc::check("routes are paths", [](std::uint32_t seed) {
    Random random(seed);
    const ClusterSpec spec = any_cluster(random);
    const std::int64_t nodes = spec.fabric.kind == FabricKind::Torus
                                   ? product(spec.fabric.torus)
                                   : static_cast<std::int64_t>(1 + random() % 9);
    const Topology topology = Topology::build(spec, nodes);
    RC_ASSERT(topology.is_connected());
    std::vector<LinkIndex> route;
    for (int i = 0; i < 50; ++i) {
      const auto from = static_cast<std::uint32_t>(random() % topology.accelerators());
      const auto to = static_cast<std::uint32_t>(random() % topology.accelerators());
      RC_ASSERT(topology.route(from, to, route));
      RC_ASSERT(is_path(topology, from, to, route));
    }
  }));
}

TEST(Topology, SameRailStaysOnItsLeafAndOtherRailsGoThroughNvlinkFirst) {
  const ClusterSpec spec = cluster(FabricKind::RailOptimised, {{32, 1.0}, {128, 1.0}});
  const Topology topology = Topology::build(spec, 32);
  const auto same_rail = route_of(topology, 3, 8 + 3);
  EXPECT_EQ(same_rail.size(), 4U);  // accelerator, NIC, leaf, NIC, accelerator
  EXPECT_EQ(topology.latency(same_rail), spec.fabric.base_latency);

  const auto other_rail = route_of(topology, 3, 8 + 5);
  EXPECT_EQ(count_kind(topology, other_rail, VertexKind::ScaleUpSwitch), 1U);
  EXPECT_EQ(count_kind(topology, other_rail, VertexKind::FabricSwitch), 1U);
  EXPECT_EQ(topology.latency(other_rail), spec.fabric.base_latency + spec.node.scale_up.latency);
}

TEST(Topology, LeafSpineClimbsOnlyAsHighAsNeededAndPaysEachLevelOnce) {
  ClusterSpec spec =
      cluster(FabricKind::LeafSpine,
              {{2, 1.0, Seconds(0.0)}, {4, 1.0, microseconds(2.0)}, {64, 1.0, microseconds(3.0)}});
  spec.fabric.base_latency = microseconds(5.0);
  const Topology topology = Topology::build(spec, 16);
  const auto switches = [&](std::uint32_t to_node) {
    return count_kind(topology, route_of(topology, 0, 8 * to_node), VertexKind::FabricSwitch);
  };
  const auto latency_us = [&](std::uint32_t to_node) {
    return topology.latency(route_of(topology, 0, 8 * to_node)).value() * 1e6;
  };
  EXPECT_EQ(switches(1), 1U);
  EXPECT_EQ(switches(3), 3U);
  EXPECT_EQ(switches(4), 5U);
  EXPECT_NEAR(latency_us(1), 5.0, 1e-9);
  EXPECT_NEAR(latency_us(3), 7.0, 1e-9);
  EXPECT_NEAR(latency_us(4), 10.0, 1e-9);
}

// Half of the nodes send through the uplinks of their pods:
// nodes / 2 x NICs x bandwidth / oversubscription.
TEST(Topology, BisectionOfAnOversubscribedFabricIsItsClosedForm) {
  for (const FabricKind kind : {FabricKind::LeafSpine, FabricKind::RailOptimised}) {
    for (const double oversubscription : {1.0, 2.0, 4.0}) {
      const ClusterSpec spec = cluster(kind, {{4, oversubscription}, {64, 1.0}});
      const double expected = 8 * 8 * 50e9 / oversubscription;
      EXPECT_NEAR(Topology::build(spec, 16).bisection_bandwidth().value(), expected, 1e3);
    }
  }
}

// Levels multiply: 2 at the leaves and 3 above them leave a sixth across the top.
TEST(Topology, OversubscriptionOfLevelsMultiplies) {
  const ClusterSpec spec = cluster(FabricKind::LeafSpine, {{2, 2.0}, {8, 3.0}, {64, 1.0}});
  EXPECT_NEAR(Topology::build(spec, 16).bisection_bandwidth().value(), 8 * 8 * 50e9 / 6.0, 1e3);
}

// Two cuts of (product of the other axes) links across the longest axis; a link has a node's
// bandwidth over the 2 x axes directions.
TEST(Topology, BisectionOfATorusIsItsClosedForm) {
  const Topology topology = Topology::build(torus({8, 4, 4}), 128);
  EXPECT_NEAR(topology.bisection_bandwidth().value(), 2 * 4 * 4 * 50e9 / 6.0, 1e3);
}

TEST(Topology, TorusRoutesHaveTheLengthOfTheShorterWayOnEachAxis) {
  const std::vector<std::int64_t> sizes{5, 4, 3};
  const Topology topology = Topology::build(torus(sizes), 60);
  for (std::uint32_t to = 0; to < 60; ++to) {
    const std::uint32_t places[] = {to / 12, to / 3 % 4, to % 3};
    std::uint32_t hops = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const auto size = static_cast<std::uint32_t>(sizes[axis]);
      hops += std::min(places[axis], size - places[axis]);
    }
    const auto route = route_of(topology, 0, to);
    // It leads to the NIC and the router, and back down at the other end.
    EXPECT_EQ(route.size(), to == 0 ? 0U : hops + 4U);
  }
}

TEST(Topology, NodesBeyondTheLastLevelAreCutOff) {
  const Topology topology = Topology::build(cluster(FabricKind::LeafSpine, {{4, 1.0}}), 8);
  EXPECT_FALSE(topology.is_connected());
  std::vector<LinkIndex> route;
  EXPECT_FALSE(topology.route(0, 63, route));
  EXPECT_EQ(topology.bisection_bandwidth(), BytesPerSecond(0.0));
  EXPECT_FALSE(Topology::build(cluster(FabricKind::None, {}), 2).is_connected());
}

TEST(Topology, TorusSmallerThanTheClusterIsRefused) {
  EXPECT_THROW(Topology::build(torus({2, 2}), 5), InputError);
}

TEST(Topology, AchievableRatesAreTheNominalOnesTimesTheirEfficiencies) {
  ClusterSpec spec = cluster(FabricKind::LeafSpine, {{16, 1.0}});
  spec.node.nic.efficiency = 0.9;
  const auto ratio = Topology::build(spec, 16, LinkRate::Achievable).bisection_bandwidth() /
                     Topology::build(spec, 16).bisection_bandwidth();
  EXPECT_NEAR(ratio, 0.9, 1e-6);
}

TEST(Topology, SixteenThousandAcceleratorsAreConnectedAndRouted) {
  const ClusterSpec spec = cluster(FabricKind::RailOptimised, {{32, 1.0}, {256, 1.0}, {4096, 7.0}});
  const Topology topology = Topology::build(spec, 2048);
  EXPECT_EQ(topology.accelerators(), 16384U);
  EXPECT_TRUE(topology.is_connected());
  EXPECT_TRUE(is_path(topology, 0, 16383, route_of(topology, 0, 16383)));
}

}  // namespace
}  // namespace shardwright::sim
