#include "sim/network/topology.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <set>

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

ClusterSpec torus_cluster(std::vector<std::int64_t> sizes) {
  ClusterSpec spec = cluster(FabricKind::Torus, {});
  spec.node.accelerators = spec.node.nic.per_node = spec.node.scale_up.domain = 1;
  spec.fabric.torus = std::move(sizes);
  return spec;
}

std::int64_t product(const std::vector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

using Route = std::vector<RouteLink>;

Route route_of(const Topology& topology, std::uint32_t from, std::uint32_t to) {
  Route route;
  EXPECT_TRUE(topology.route(from, to, route));
  return route;
}

std::size_t count_kind(const Topology& topology, const Route& route, VertexKind kind) {
  return static_cast<std::size_t>(std::ranges::count_if(route, [&](RouteLink hop) {
    return topology.vertices()[topology.links()[hop.link].to] == kind;
  }));
}

double hops_of(const Route& route) {
  return std::accumulate(route.begin(), route.end(), 0.0,
                         [](double sum, const RouteLink& hop) { return sum + hop.share; });
}

// True if all traffic leaves `from` and arrives at `to`, nothing is lost on the way, and each
// vertex is entered by at most the whole traffic.
bool carries_all(const Topology& topology, std::uint32_t from, std::uint32_t to,
                 const Route& route) {
  std::map<VertexIndex, double> entering, leaving;
  for (const RouteLink& hop : route) {
    leaving[topology.links()[hop.link].from] += hop.share;
    entering[topology.links()[hop.link].to] += hop.share;
  }
  if (from == to) return route.empty();
  entering[from] += 1.0;
  leaving[to] += 1.0;
  return entering == leaving &&
         std::ranges::all_of(entering, [](const auto& each) { return each.second <= 1.0; });
}

// The links that traffic between two domains, or within one, may pass: a domain's accelerators use
// the links of the domain alone, and traffic between domains that keeps its rail uses none of them.
bool may_pass(const Topology& topology, const TopologyLink& link, bool within_domain) {
  const auto is_inside = [&](VertexIndex vertex) {
    return topology.vertices()[vertex] == VertexKind::Accelerator ||
           topology.vertices()[vertex] == VertexKind::ScaleUpSwitch;
  };
  return (is_inside(link.from) && is_inside(link.to)) == within_domain;
}

// Hops from a vertex to all others by breadth-first search: the second implementation.
std::vector<std::uint32_t> distances(const Topology& topology, std::uint32_t from,
                                     bool within_domain) {
  std::vector<std::vector<VertexIndex>> next(topology.vertices().size());
  for (const TopologyLink& link : topology.links()) {
    if (may_pass(topology, link, within_domain)) next[link.from].push_back(link.to);
  }
  std::vector<std::uint32_t> hops(next.size(), ~0U);
  std::vector<VertexIndex> reached{from};
  hops[from] = 0;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const VertexIndex to : next[reached[i]]) {
      if (hops[to] != ~0U) continue;
      hops[to] = hops[reached[i]] + 1;
      reached.push_back(to);
    }
  }
  return hops;
}

ClusterSpec any_cluster(Random& random) {
  switch (random() % 6) {
    case 0:
      return torus_cluster({static_cast<std::int64_t>(1 + random() % 5), 4, 3});
    case 1:
      return torus_cluster({static_cast<std::int64_t>(2 + random() % 5)});
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

RC_GTEST_PROP(Topology, EveryRouteIsASimplePath, (std::uint32_t seed)) {
  Random random(seed);
  const ClusterSpec spec = any_cluster(random);
  const std::int64_t nodes = spec.fabric.kind == FabricKind::Torus
                                 ? product(spec.fabric.torus)
                                 : static_cast<std::int64_t>(1 + random() % 9);
  const Topology topology = Topology::build(spec, nodes);
  RC_ASSERT(topology.is_connected());
  Route route;
  for (int i = 0; i < 50; ++i) {
    const auto from = static_cast<std::uint32_t>(random() % topology.accelerators());
    const auto to = static_cast<std::uint32_t>(random() % topology.accelerators());
    RC_ASSERT(topology.route(from, to, route));
    RC_ASSERT(carries_all(topology, from, to, route));
  }
}

// The number of axes of the torus, of one accelerator a node, on which the places of two nodes
// differ.
std::size_t axes_between(const Topology& topology, std::uint32_t a, std::uint32_t b) {
  std::size_t axes = 0;
  for (auto axis = topology.torus().rbegin(); axis != topology.torus().rend(); ++axis) {
    const auto size = static_cast<std::uint32_t>(axis->nodes);
    axes += a % size != b % size ? 1 : 0;
    a /= size;
    b /= size;
  }
  return axes;
}

// A route has no more hops than the shortest path, both ways, and takes all shortest paths where
// these do not differ in the order of the axes alone. Routes that change their rail by NVLink are
// longer on purpose.
RC_GTEST_PROP(Topology, RoutesAreAllShortestPathsThatTheFabricAllows, (std::uint32_t seed)) {
  Random random(seed);
  const ClusterSpec spec = any_cluster(random);
  const bool is_torus = spec.fabric.kind == FabricKind::Torus;
  const std::int64_t nodes =
      is_torus ? product(spec.fabric.torus) / static_cast<std::int64_t>(1 + random() % 2)
               : static_cast<std::int64_t>(1 + random() % 9);
  const Topology topology = Topology::build(spec, std::max<std::int64_t>(1, nodes));
  const auto domain = static_cast<std::uint32_t>(spec.node.scale_up.domain);
  for (int i = 0; i < 20; ++i) {
    auto from = static_cast<std::uint32_t>(random() % topology.accelerators());
    auto to = static_cast<std::uint32_t>(random() % topology.accelerators());
    const bool within = from / domain == to / domain;
    if (!within && spec.fabric.kind == FabricKind::RailOptimised &&
        topology.rail_of(from) != topology.rail_of(to))
      continue;
    for (int way = 0; way < 2; ++way, std::swap(from, to)) {
      const Route route = route_of(topology, from, to);
      const auto ahead = distances(topology, from, within);
      const auto behind = distances(topology, to, within);
      RC_ASSERT(hops_of(route) == static_cast<double>(ahead[to]));
      std::set<LinkIndex> used, shortest;
      for (const RouteLink& hop : route) used.insert(hop.link);
      for (LinkIndex link = 0; link < topology.links().size(); ++link) {
        const TopologyLink& ends = topology.links()[link];
        const bool reached = ahead[ends.from] != ~0U && behind[ends.to] != ~0U;
        if (reached && may_pass(topology, ends, within) &&
            ahead[ends.from] + 1 + behind[ends.to] == ahead[to])
          shortest.insert(link);
      }
      RC_ASSERT(std::includes(shortest.begin(), shortest.end(), used.begin(), used.end()));
      if (!is_torus || axes_between(topology, from, to) < 2) RC_ASSERT(used == shortest);
    }
  }
}

// Half-way round on two axes of three.
TEST(Topology, EquallyShortWaysRoundATorusShareTheTraffic) {
  const Topology topology = Topology::build(torus_cluster({4, 3, 6}), 72);
  const Route route = route_of(topology, 0, 2 * 18 + 1 * 6 + 3);
  EXPECT_TRUE(carries_all(topology, 0, 2 * 18 + 1 * 6 + 3, route));
  const auto halves =
      std::ranges::count_if(route, [](const RouteLink& hop) { return hop.share == 0.5; });
  EXPECT_EQ(halves, 2 * 2 + 2 * 3);
  EXPECT_EQ(hops_of(route), 2 + 1 + 3 + 4);
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
  const Topology topology = Topology::build(torus_cluster({8, 4, 4}), 128);
  EXPECT_NEAR(topology.bisection_bandwidth().value(), 2 * 4 * 4 * 50e9 / 6.0, 1e3);
}

TEST(Topology, TorusRoutesHaveTheLengthOfTheShorterWayOnEachAxis) {
  const std::vector<std::int64_t> sizes{5, 4, 3};
  const Topology topology = Topology::build(torus_cluster(sizes), 60);
  for (std::uint32_t to = 0; to < 60; ++to) {
    const std::uint32_t places[] = {to / 12, to / 3 % 4, to % 3};
    std::uint32_t hops = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const auto size = static_cast<std::uint32_t>(sizes[axis]);
      hops += std::min(places[axis], size - places[axis]);
    }
    const auto route = route_of(topology, 0, to);
    // It leads to the NIC and the router, and back down at the other end.
    EXPECT_EQ(hops_of(route), to == 0 ? 0U : hops + 4U);
  }
}

TEST(Topology, NodesBeyondTheLastLevelAreCutOff) {
  const Topology topology = Topology::build(cluster(FabricKind::LeafSpine, {{4, 1.0}}), 8);
  EXPECT_FALSE(topology.is_connected());
  Route route;
  EXPECT_FALSE(topology.route(0, 63, route));
  EXPECT_EQ(topology.bisection_bandwidth(), BytesPerSecond(0.0));
  EXPECT_FALSE(Topology::build(cluster(FabricKind::None, {}), 2).is_connected());
}

TEST(Topology, TorusSmallerThanTheClusterIsRefused) {
  EXPECT_THROW(Topology::build(torus_cluster({2, 2}), 5), InputError);
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
  EXPECT_TRUE(carries_all(topology, 0, 16383, route_of(topology, 0, 16383)));
}

}  // namespace
}  // namespace shardwright::sim
