// Laws of the collective costs: bounds, monotony, scaling, the choice of algorithm.
#include "sim/cost/collective_cost.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>

#include "tests/sim/cost/shipped_hardware.hpp"

namespace shardwright::sim {
namespace {

constexpr std::array kKinds = {OpKind::AllReduce, OpKind::AllGather, OpKind::ReduceScatter,
                               OpKind::AllToAll,  OpKind::Broadcast, OpKind::Send};

GroupPlacement on_nodes(std::int64_t nodes, std::int64_t per_node) {
  return {.size = nodes * per_node,
          .per_node = per_node,
          .nodes = nodes,
          .groups_per_node = nodes > 1 ? 8 / per_node : 1,
          .span = nodes};
}

GroupPlacement any_placement() {
  const std::int64_t per_node = *rc::gen::element<std::int64_t>(1, 2, 4, 8);
  const std::int64_t nodes = *rc::gen::element<std::int64_t>(1, 2, 4, 32, 512);
  return on_nodes(nodes, nodes == 1 ? std::max<std::int64_t>(2, per_node) : per_node);
}

OpKind any_kind() {
  return kKinds[*rc::gen::inRange<std::size_t>(0, kKinds.size())];
}

CollectiveCost cost_of(OpKind kind, double bytes, const GroupPlacement& placement,
                       const ClusterSpec& cluster = fixtures::dgx_h100()) {
  return collective_cost(kind, Bytes(bytes), placement, cluster, StackSpec{});
}

Seconds time_of(OpKind kind, double bytes, const GroupPlacement& placement,
                const ClusterSpec& cluster = fixtures::dgx_h100()) {
  return collective_time(kind, Bytes(bytes), placement, cluster, StackSpec{});
}

TEST(CollectiveCost, OneMemberCostsNothing) {
  for (const OpKind kind : kKinds) {
    const CollectiveCost cost = cost_of(kind, 1e9, GroupPlacement{});
    EXPECT_EQ(cost.time, Seconds(0));
    EXPECT_EQ(cost.algorithm, Algorithm::None);
  }
}

// What a stack slows down are the accelerators' own links and kernels.
TEST(CollectiveCost, InAStepCollectivesInANodeMessagesAndAllToAllsAreSlowerByARatio) {
  StackSpec stack;
  stack.communication.collective_ratio = 0.5;
  stack.communication.all_to_all_ratio = 0.8;
  const auto ratio = [&](OpKind kind, std::int64_t nodes) {
    const GroupPlacement group = on_nodes(nodes, 8);
    return time_of(kind, 1e8, group) /
           collective_time(kind, Bytes(1e8), group, fixtures::dgx_h100(), stack);
  };
  EXPECT_DOUBLE_EQ(ratio(OpKind::AllReduce, 1), 0.5);
  EXPECT_DOUBLE_EQ(ratio(OpKind::AllToAll, 1), 0.5);
  EXPECT_DOUBLE_EQ(ratio(OpKind::AllToAll, 4), 0.8);
  EXPECT_DOUBLE_EQ(ratio(OpKind::Send, 2), 0.5);
  stack.communication.sends_tokens_once_per_node = true;
  EXPECT_DOUBLE_EQ(ratio(OpKind::AllToAll, 1), 0.8);
}

TEST(CollectiveCost, InAStepANetworkThatIsSlowLosesNoMoreThanAFastOne) {
  StackSpec stack;
  stack.communication.collective_ratio = 0.5;
  const auto lost = [&](OpKind kind, double nic) {
    ClusterSpec cluster = fixtures::dgx_h100();
    cluster.node.nic.bandwidth = BytesPerSecond(nic);
    const GroupPlacement group = on_nodes(4, 8);
    const Seconds alone = time_of(kind, 1e8, group, cluster);
    const Seconds in_step = collective_time(kind, Bytes(1e8), group, cluster, stack);
    EXPECT_GT(in_step, alone) << name_of(kind) << " " << nic;
    EXPECT_LE(in_step, alone * 2.0) << name_of(kind) << " " << nic;
    return in_step - alone;
  };
  for (const OpKind kind : kKinds) {
    if (kind == OpKind::AllToAll || kind == OpKind::Send) continue;
    EXPECT_NEAR(lost(kind, 1e8) / lost(kind, 1e9), 1.0, 1e-9) << name_of(kind);
    EXPECT_GE(lost(kind, 1e9) * (1.0 + 1e-9), lost(kind, 1e12)) << name_of(kind);
  }
}

// DeepEP's kernels run on a few SMs, whatever the links carry; NVL72 runs others.
TEST(CollectiveCost, KernelsThatSendTokensAreBoundByTheirStack) {
  StackSpec stack;
  stack.communication.token_bandwidth = gigabytes_per_second(270.0);
  const GroupPlacement node = on_nodes(1, 8);
  const TokenTraffic once = token_traffic(8192, 8, 0, node);
  const auto time = [&](const char* cluster, const TokenTraffic& tokens) {
    return collective_time(OpKind::AllToAll, Bytes(1e9), node, load_cluster(cluster), stack,
                           tokens);
  };
  const auto rate = [&](const char* cluster, const TokenTraffic& tokens) {
    return tokens.local * 7.0 / 8.0 / time(cluster, tokens).value();
  };
  EXPECT_NEAR(rate("dgx-h100", once), 263.0, 7.0);
  EXPECT_NEAR(rate("dgx-b200", once), 263.0, 7.0);
  EXPECT_GT(rate("dgx-b200", {}), 500.0);
  EXPECT_GT(rate("gb200-nvl72", once), 500.0);
  const Seconds before = time("dgx-b200", once);
  stack.communication.token_time = microseconds(0.03);
  EXPECT_NEAR((time("dgx-b200", once) - before).value(), 8192 * 30e-9, 1e-12);
}

RC_GTEST_PROP(CollectiveCost, GrowsWithBytes, ()) {
  const OpKind kind = any_kind();
  const GroupPlacement placement = any_placement();
  const double bytes = std::exp2(*rc::gen::inRange(300, 3400) * 0.01);
  // The time is the same, except for rounding, where more bytes keep more channels busy.
  constexpr double kRounding = 1.0 - 1e-12;
  RC_ASSERT(time_of(kind, bytes * 1.1, placement) >= time_of(kind, bytes, placement) * kRounding);
  RC_ASSERT(time_of(kind, bytes * 100.0, placement) > time_of(kind, bytes, placement));
}

// The data keep so many busy, at most those of the node's links, or two for each NIC.
TEST(CollectiveCost, UsesMoreChannelsForMoreBytes) {
  const auto channels = [](double bytes, const GroupPlacement& placement) {
    return cost_of(OpKind::AllGather, bytes, placement).channels;
  };
  EXPECT_EQ(channels(1e3, on_nodes(1, 8)), 1);
  EXPECT_GT(channels(2e5, on_nodes(1, 8)), 1);
  EXPECT_LT(channels(2e5, on_nodes(1, 8)), 16);
  EXPECT_EQ(channels(1e9, on_nodes(1, 8)), 16);
  EXPECT_EQ(channels(1e9, on_nodes(4, 8)), 16);
  EXPECT_EQ(channels(1e9, on_nodes(4, 1)), 2);
}

// 2(n-1)/n S/B, with the link's full bandwidth inside a node and the NICs' between nodes.
RC_GTEST_PROP(CollectiveCost, RingAllReduceIsNeverFasterThanItsTraffic, ()) {
  const ClusterSpec cluster = fixtures::dgx_h100();
  const GroupPlacement placement = any_placement();
  const Bytes bytes(std::exp2(*rc::gen::inRange(300, 3400) * 0.01));
  const CollectiveCost cost =
      collective_cost(OpKind::AllReduce, bytes, placement, cluster, StackSpec{}, Algorithm::Ring);
  const auto n = static_cast<double>(placement.size);
  const BytesPerSecond links =
      placement.nodes > 1
          ? std::min(cluster.node.scale_up.bandwidth,
                     cluster.node.nic.bandwidth * static_cast<double>(placement.per_node))
          : cluster.node.scale_up.bandwidth;
  RC_ASSERT(cost.algorithm == Algorithm::Ring);
  RC_ASSERT(cost.time >= bytes * (2.0 * (n - 1.0) / n) / links);
}

RC_GTEST_PROP(CollectiveCost, TwiceTheNetworkTakesHalfTheTime, ()) {
  const ClusterSpec cluster = fixtures::dgx_h100();
  ClusterSpec twice = cluster;
  twice.node.scale_up.bandwidth *= 2.0;
  twice.node.nic.bandwidth *= 2.0;
  twice.node.scale_up.latency *= 0.5;
  twice.node.scale_up.collective_overhead *= 0.5;
  twice.fabric.base_latency *= 0.5;
  const OpKind kind = any_kind();
  const GroupPlacement placement = any_placement();
  const double bytes = std::exp2(*rc::gen::inRange(3, 34));
  const double ratio =
      time_of(kind, bytes, placement, cluster) / time_of(kind, bytes, placement, twice);
  RC_ASSERT(std::abs(ratio - 2.0) < 1e-9);
}

TEST(CollectiveCost, RingAllReduceIsReduceScatterAndAllGather) {
  const ClusterSpec cluster = fixtures::dgx_h100();
  for (const GroupPlacement& placement : {on_nodes(1, 8), on_nodes(4, 8), on_nodes(16, 1)}) {
    const Seconds whole = collective_cost(OpKind::AllReduce, gigabytes(1), placement, cluster,
                                          StackSpec{}, Algorithm::Ring)
                              .time;
    const Seconds parts =
        time_of(OpKind::ReduceScatter, 1e9, placement) + time_of(OpKind::AllGather, 1e9, placement);
    EXPECT_NEAR(whole / parts, 1.0, 0.05);
  }
}

// An H100 node reaches about 370 GB/s of bus bandwidth by rings and 480 by NVLS (NVIDIA/nccl-tests
// issue 212).
// The bus bandwidths in GB/s of 268 MB among 2, 4 and 8 H100 by XLA's tables, whose NCCL is older
// than 2.27, and by nccl-tests of NCCL 2.29 (measurements/collectives.jsonl).
TEST(CollectiveCost, ShortRingsThatReduceAreAsFastAsTheNcclOfTheirStack) {
  struct Published {
    OpKind kind;
    std::int64_t members;
    double old_bus, new_bus;
  };
  for (const Published& each : {Published{OpKind::ReduceScatter, 2, 173.7, 229.4},
                                Published{OpKind::ReduceScatter, 4, 260.1, 296.7},
                                Published{OpKind::ReduceScatter, 8, 304.6, 325.4},
                                Published{OpKind::AllReduce, 2, 227.2, 304.6},
                                Published{OpKind::AllGather, 4, 302.2, 304.7},
                                Published{OpKind::AllGather, 8, 322.1, 322.3}}) {
    const auto bus = [&](double tail) {
      StackSpec stack;
      stack.communication.reduction_tail = tail;
      const double bytes = 268435456.0;
      const Seconds time = collective_time(each.kind, Bytes(bytes), on_nodes(1, each.members),
                                           fixtures::dgx_h100(), stack);
      return bytes * bus_factor(each.kind, each.members) / time.value() / 1e9;
    };
    EXPECT_NEAR(bus(1.0) / each.old_bus, 1.0, 0.1) << each.members;
    EXPECT_NEAR(bus(0.4) / each.new_bus, 1.0, 0.1) << each.members;
  }
}

TEST(CollectiveCost, TheChannelsOfAMessageBoundWhatOnePeerGets) {
  ClusterSpec cluster = fixtures::dgx_h100();
  ScaleUpSpec& links = cluster.node.scale_up;
  const auto rate = [&](OpKind kind, std::int64_t members) {
    const Seconds time = time_of(kind, 4e9, on_nodes(1, members), cluster);
    return 4e9 * bus_factor(kind, members) / time.value();
  };
  const double unbound = rate(OpKind::AllToAll, 8), message = rate(OpKind::Send, 2);
  links.peer_bandwidth = links.bandwidth * (links.pair_efficiency / 3.0);
  EXPECT_NEAR(rate(OpKind::Send, 2) / message, 1.0 / 3.0, 0.02);
  EXPECT_LT(rate(OpKind::AllToAll, 2), 1.02 * links.peer_bandwidth.value());
  EXPECT_NEAR(rate(OpKind::AllToAll, 3) / rate(OpKind::AllToAll, 2), 2.0, 0.05);
  EXPECT_DOUBLE_EQ(rate(OpKind::AllToAll, 8), unbound);
}

TEST(CollectiveCost, MessagesMayReachLessOfANicThanRings) {
  ClusterSpec cluster = fixtures::dgx_h100();
  const GroupPlacement group = on_nodes(4, 8);
  const auto time = [&](OpKind kind) { return time_of(kind, 4e9, group, cluster); };
  const Seconds ring = time(OpKind::AllGather), tokens = time(OpKind::AllToAll);
  cluster.node.nic.pair_efficiency = cluster.node.nic.efficiency;
  EXPECT_EQ(time(OpKind::AllToAll), tokens);
  cluster.node.nic.pair_efficiency = 0.5 * cluster.node.nic.efficiency;
  EXPECT_EQ(time(OpKind::AllGather), ring);
  EXPECT_NEAR(time(OpKind::AllToAll) / tokens, 2.0, 0.05);
}

TEST(CollectiveCost, APeerOnAnotherNodeDelaysASmallAllToAllAndOneOnTheNodeDoesNot) {
  const auto small = [](std::int64_t nodes, std::int64_t per_node) {
    return time_of(OpKind::AllToAll, 64.0, on_nodes(nodes, per_node));
  };
  EXPECT_NEAR(small(1, 8) / small(1, 2), 1.0, 0.01);
  EXPECT_NEAR((small(8, 8) - small(4, 8)) / (small(4, 8) - small(2, 8)), 2.0, 0.05);
}

TEST(CollectiveCost, LargeAllReducesOfANodeUseItsSwitch) {
  const ClusterSpec cluster = fixtures::dgx_h100();
  const CollectiveCost cost = cost_of(OpKind::AllReduce, 8e9, on_nodes(1, 8));
  EXPECT_EQ(cost.algorithm, Algorithm::Nvls);
  const double bus_bytes = 8e9 * bus_factor(OpKind::AllReduce, 8);
  EXPECT_NEAR(bus_bytes / cost.time.value(), 480e9, 15e9);
  const CollectiveCost ring = collective_cost(OpKind::AllReduce, gigabytes(8), on_nodes(1, 8),
                                              cluster, StackSpec{}, Algorithm::Ring);
  EXPECT_NEAR(bus_bytes / ring.time.value(), 367e9, 15e9);
}

TEST(CollectiveCost, SmallMessagesUseLL) {
  EXPECT_EQ(cost_of(OpKind::AllGather, 4096, on_nodes(1, 8)).protocol, Protocol::LL);
  EXPECT_EQ(cost_of(OpKind::AllGather, 4e9, on_nodes(1, 8)).protocol, Protocol::Simple);
}

TEST(CollectiveCost, RingsOverManyNodesGiveWayToTreesForSmallMessages) {
  ClusterSpec cluster = fixtures::dgx_h100();
  cluster.node.scale_up.in_network_reduction = false;
  EXPECT_EQ(cost_of(OpKind::AllReduce, 1e5, on_nodes(512, 1), cluster).algorithm, Algorithm::Tree);
}

TEST(CollectiveCost, SwitchesOfTheNetworkHalveTheTrafficOfANode) {
  ClusterSpec cluster = fixtures::dgx_h100();
  const Seconds without = time_of(OpKind::AllReduce, 4e9, on_nodes(32, 1), cluster);
  cluster.fabric.in_network_reduction = true;
  const CollectiveCost with = cost_of(OpKind::AllReduce, 4e9, on_nodes(32, 1), cluster);
  EXPECT_EQ(with.algorithm, Algorithm::CollNet);
  EXPECT_NEAR(without / with.time, 2.0, 0.15);
}

TEST(CollectiveCost, GroupsThatShareNicsAreSlower) {
  GroupPlacement alone = on_nodes(16, 1);
  alone.groups_per_node = 1;
  ClusterSpec cluster = fixtures::dgx_h100();
  cluster.node.nic.per_node = 4;
  const Seconds one = time_of(OpKind::AllGather, 1e9, alone, cluster);
  const Seconds eight = time_of(OpKind::AllGather, 1e9, on_nodes(16, 1), cluster);
  EXPECT_NEAR(eight / one, 2.0, 0.1);
}

TEST(CollectiveCost, OversubscriptionHurtsAllToAllButNotPackedRings) {
  const ClusterSpec flat = fixtures::dgx_h100();
  ClusterSpec thin = flat;
  thin.fabric.levels = {{.nodes = 8, .oversubscription = 4.0, .latency = Seconds(0)},
                        {.nodes = 1024, .oversubscription = 1.0, .latency = Seconds(0)}};
  const GroupPlacement group = on_nodes(32, 8);
  EXPECT_NEAR(
      time_of(OpKind::AllGather, 8e9, group, thin) / time_of(OpKind::AllGather, 8e9, group, flat),
      1.0, 1e-9);
  const double share_across = 24.0 / 31.0;
  EXPECT_NEAR(
      time_of(OpKind::AllToAll, 8e9, group, thin) / time_of(OpKind::AllToAll, 8e9, group, flat),
      4.0 * share_across, 0.2);
  GroupPlacement spread = on_nodes(4, 1);
  spread.span = 32;
  EXPECT_NEAR(
      time_of(OpKind::AllGather, 8e9, spread, thin) / time_of(OpKind::AllGather, 8e9, spread, flat),
      4.0, 0.1);
}

// A domain of several servers on a fabric whose levels count servers is one server with all of
// their accelerators and NICs on a fabric whose levels count it.
TEST(CollectiveCost, DomainsOfServersArePricedAsLargeServers) {
  ClusterSpec large = fixtures::dgx_h100();
  large.fabric.levels = {{.nodes = 2, .oversubscription = 4.0}, {.nodes = 64}};
  ClusterSpec servers = large;
  servers.node.accelerators = 2;
  servers.node.nic.per_node = 2;
  servers.fabric.levels = {{.nodes = 8, .oversubscription = 4.0}, {.nodes = 256}};
  EXPECT_TRUE(rc::check([&] {
    const OpKind kind = any_kind();
    const GroupPlacement placement = any_placement();
    const double bytes = std::exp2(*rc::gen::inRange(300, 3400) * 0.01);
    RC_ASSERT(time_of(kind, bytes, placement, servers) == time_of(kind, bytes, placement, large));
  }));
}

TEST(CollectiveCost, HierarchyHasFewerStepsThanARingOverAllMembers) {
  const ClusterSpec cluster = fixtures::dgx_h100();
  const auto with = [&](Algorithm algorithm) {
    return collective_cost(OpKind::AllGather, Bytes(1e4), on_nodes(4, 8), cluster, StackSpec{},
                           algorithm)
        .time;
  };
  EXPECT_LT(with(Algorithm::Hierarchical), with(Algorithm::Ring) * 1.2);
}

}  // namespace
}  // namespace shardwright::sim
