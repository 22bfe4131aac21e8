// The shares of a torus against the links that routes through its graph take.
#include "sim/cost/torus_path.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/spec/profile_library.hpp"
#include "sim/cost/collective_cost.hpp"
#include "sim/network/topology.hpp"

namespace shardwright::sim {
namespace {

constexpr double kLink = 1e9;  // bandwidth of a link of the tori below

// One accelerator a node, whose NIC is as wide as all links of its router.
ClusterSpec torus(std::vector<std::int64_t> sides) {
  ClusterSpec cluster;
  cluster.node.accelerators = cluster.node.scale_up.domain = cluster.node.nic.per_node = 1;
  cluster.node.nic.bandwidth = BytesPerSecond(2.0 * static_cast<double>(sides.size()) * kLink);
  cluster.fabric.kind = FabricKind::Torus;
  cluster.fabric.torus = std::move(sides);
  return cluster;
}

// All groups of the kind: each node is a member of the one that begins at its remainder.
std::vector<std::vector<std::uint32_t>> groups_of(const GroupDimension& run, std::int64_t nodes) {
  std::vector<std::vector<std::uint32_t>> groups;
  for (std::int64_t first = 0; first < nodes; ++first) {
    if (first / run.stride % run.count != 0) continue;
    auto& group = groups.emplace_back();
    for (std::int64_t i = 0; i < run.count; ++i)
      group.push_back(static_cast<std::uint32_t>(first + i * run.stride));
  }
  return groups;
}

GroupPlacement placed(const GroupDimension& run, std::int64_t nodes) {
  GroupPlacement placement{.size = run.count, .per_node = 1, .nodes = run.count};
  placement.span = (run.count - 1) * run.stride + 1;
  placement.grid.append(run.count, run.stride);
  placement.job_nodes = nodes;
  return placement;
}

// Bytes over each link of the torus.
class LinkLoads {
 public:
  explicit LinkLoads(const Topology& topology)
      : topology_(topology), bytes_(topology.links().size()) {}

  void send(std::uint32_t from, std::uint32_t to, double bytes) {
    ASSERT_TRUE(topology_.route(from, to, route_));
    for (const RouteLink& hop : route_) bytes_[hop.link] += bytes * hop.share;
  }

  double fullest() const {
    double most = 0.0;
    for (LinkIndex link = 0; link < bytes_.size(); ++link) {
      const TopologyLink& ends = topology_.links()[link];
      if (topology_.vertices()[ends.from] == VertexKind::TorusRouter &&
          topology_.vertices()[ends.to] == VertexKind::TorusRouter)
        most = std::max(most, bytes_[link]);
    }
    return most;
  }

 private:
  const Topology& topology_;
  std::vector<double> bytes_;
  std::vector<RouteLink> route_;
};

struct AnyGroup {
  ClusterSpec cluster;
  std::int64_t nodes = 1;
  GroupDimension run;
};

// Sizes are powers of two, so that groups fill the axes; half of the slices are open.
AnyGroup any_group() {
  const auto power = [](int most) { return std::int64_t{1} << *rc::gen::inRange(0, most); };
  const std::vector<std::int64_t> sides{2 * power(3), 2 * power(3), 2 * power(3)};
  AnyGroup any{torus(sides), 0, {}};
  any.nodes = any.cluster.fabric.torus_places();
  if (*rc::gen::arbitrary<bool>()) any.nodes /= 2;
  any.run.count = 2 * power(3);
  while (any.run.count > any.nodes) any.run.count /= 2;
  while (2 * any.run.stride * any.run.count <= any.nodes && *rc::gen::inRange(0, 3) > 0)
    any.run.stride *= 2;
  return any;
}

RC_GTEST_PROP(TorusPath, AllPairsFillTheLinksAsTheirRoutesDo, ()) {
  const AnyGroup any = any_group();
  const Topology topology = Topology::build(any.cluster, any.nodes);
  LinkLoads loads(topology);
  for (const auto& group : groups_of(any.run, any.nodes)) {
    for (const std::uint32_t from : group) {
      for (const std::uint32_t to : group) {
        if (from != to) loads.send(from, to, 1.0 / static_cast<double>(any.run.count - 1));
      }
    }
  }
  if (any.run.count == 2) return;  // messages, below
  const double share = torus_path(placed(any.run, any.nodes), any.cluster.fabric).pairwise;
  const double seconds = 1.0 / (share * any.cluster.node.nic.bandwidth.value());
  RC_ASSERT(std::abs(seconds * kLink / loads.fullest() - 1.0) < 1e-9);
}

// A ring one way round, and one the other way with the other half of the data.
TEST(TorusPath, RingsAlongAnAxisFillItsLinks) {
  for (const std::int64_t nodes : {4, 8}) {  // open, closed
    const ClusterSpec cluster = torus({8});
    const Topology topology = Topology::build(cluster, nodes);
    for (const std::int64_t stride : {std::int64_t{1}, nodes / 4}) {
      const GroupDimension run{4, stride};
      LinkLoads loads(topology);
      for (const auto& group : groups_of(run, nodes)) {
        for (std::size_t i = 0; i < group.size(); ++i) {
          const std::uint32_t next = group[(i + 1) % group.size()];
          loads.send(group[i], next, 0.5);
          loads.send(next, group[i], 0.5);
        }
      }
      const double share = torus_path(placed(run, nodes), cluster.fabric).ring;
      const double seconds = 1.0 / (share * cluster.node.nic.bandwidth.value());
      EXPECT_NEAR(seconds * kLink, loads.fullest(), 1e-9) << nodes << " " << stride;
    }
  }
}

TEST(TorusPath, RingsOfTheWholeTorusHaveAllLinks) {
  const FabricSpec fabric = torus({4, 8, 2}).fabric;
  EXPECT_DOUBLE_EQ(torus_path(placed({64, 1}, 64), fabric).ring, 1.0);
  // The group lies along the last, the middle and the first axis alone.
  EXPECT_DOUBLE_EQ(torus_path(placed({8, 2}, 64), fabric).ring, 1.0 / 3.0);
  EXPECT_DOUBLE_EQ(torus_path(placed({4, 16}, 64), fabric).ring, 1.0 / 3.0);
  EXPECT_DOUBLE_EQ(torus_path(placed({16, 1}, 64), fabric).ring, 2.0 / 3.0);
}

RC_GTEST_PROP(TorusPath, MessagesShareTheLinksWithAllBetween, ()) {
  const std::int64_t side = *rc::gen::inRange<std::int64_t>(2, 12);
  const std::int64_t distance = *rc::gen::inRange<std::int64_t>(1, side);
  const ClusterSpec cluster = torus({side});
  const Topology topology = Topology::build(cluster, side);
  LinkLoads loads(topology);
  for (std::int64_t node = 0; node < side; ++node)
    loads.send(static_cast<std::uint32_t>(node),
               static_cast<std::uint32_t>((node + distance) % side), 1.0);
  GroupPlacement pair{.size = 2, .per_node = 1, .nodes = 2, .span = distance + 1};
  pair.job_nodes = side;
  const TorusPath path = torus_path(pair, cluster.fabric);
  const double seconds = 1.0 / (path.ring * cluster.node.nic.bandwidth.value());
  RC_ASSERT(std::abs(seconds * kLink - loads.fullest()) < 1e-9);
  RC_ASSERT(path.hops == static_cast<double>(std::min(distance, side - distance)));
}

// A ring of two has both links of its axis for the one neighbour.
TEST(TorusPath, OfTwoNodesIsThatOfMoreOnAClosedAxis) {
  EXPECT_DOUBLE_EQ(torus_path(placed({2, 1}, 2), torus({2}).fabric).ring, 1.0);
  EXPECT_DOUBLE_EQ(torus_path(placed({4, 1}, 4), torus({4}).fabric).ring, 1.0);
}

// Eight groups a node, one of each accelerator.
double torus_over_switch(OpKind kind, Bytes bytes, const GroupDimension& run) {
  const ClusterSpec cluster = load_cluster("ocs-torus");
  ClusterSpec switched = cluster;
  switched.fabric.kind = FabricKind::LeafSpine;
  switched.fabric.torus = switched.fabric.torus_block = {};
  switched.fabric.levels = {{512, 1.0}};
  GroupPlacement placement = placed(run, 512);
  placement.groups_per_node = 8;
  return collective_time(kind, bytes, placement, cluster, StackSpec{}) /
         collective_time(kind, bytes, placement, switched, StackSpec{});
}

RC_GTEST_PROP(TorusPath, IsNeverFasterThanASwitch, ()) {
  const OpKind kind = *rc::gen::element(OpKind::AllReduce, OpKind::AllGather, OpKind::ReduceScatter,
                                        OpKind::AllToAll, OpKind::Send);
  const std::int64_t count = kind == OpKind::Send ? 2 : std::int64_t{1} << *rc::gen::inRange(1, 10);
  const std::int64_t stride = std::int64_t{1} << *rc::gen::inRange(0, 9);
  if (count * stride > 512) return;
  const Bytes bytes(std::exp2(*rc::gen::inRange(10, 34)));
  RC_ASSERT(torus_over_switch(kind, bytes, {count, stride}) >= 1.0 - 1e-12);
}

TEST(TorusPath, SlowsPatternsByWhatTheyCross) {
  const double along_an_axis = torus_over_switch(OpKind::AllGather, gigabytes(4), {8, 1});
  const double all_pairs = torus_over_switch(OpKind::AllToAll, gigabytes(4), {512, 1});
  EXPECT_GT(along_an_axis, 1.5);
  EXPECT_GT(all_pairs, 1.5 * along_an_axis);
}

}  // namespace
}  // namespace shardwright::sim
