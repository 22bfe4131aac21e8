// Collectives fill shares of the ports that they have in common.
#include "sim/cost/port_share.hpp"

#include <gtest/gtest.h>

#include "core/spec/profile_library.hpp"
#include "sim/cost/collective_cost.hpp"
#include "sim/cost/collective_path.hpp"
#include "tests/sim/cost/shipped_hardware.hpp"

namespace shardwright::sim {
namespace {

constexpr GroupPlacement kOnOneNode{.size = 8, .per_node = 8};
constexpr GroupPlacement kOnFourNodes{
    .size = 32, .per_node = 8, .nodes = 4, .groups_per_node = 1, .span = 4};

PortShare share_of(OpKind kind, Bytes bytes, const GroupPlacement& placement) {
  const ClusterSpec cluster = fixtures::dgx_h100();
  return port_share(kind, bytes, placement, cluster,
                    collective_time(kind, bytes, placement, cluster, StackSpec{}));
}

TEST(PortShare, LongCollectivesFillTheSlowerPort) {
  for (const OpKind kind : {OpKind::AllGather, OpKind::ReduceScatter}) {
    const PortShare inside = share_of(kind, gigabytes(4), kOnOneNode);
    EXPECT_GT(inside.scale_up, 0.9);
    EXPECT_EQ(inside.nic, 0.0F);
    const PortShare across = share_of(kind, gigabytes(32), kOnFourNodes);
    EXPECT_GT(across.nic, 0.9);
    EXPECT_LT(across.scale_up, across.nic);
  }
}

TEST(PortShare, ShortCollectivesLeaveThePortsToOthers) {
  for (const OpKind kind : {OpKind::AllReduce, OpKind::AllGather, OpKind::AllToAll}) {
    const PortShare share = share_of(kind, Bytes(4096), kOnFourNodes);
    EXPECT_LT(share.nic, 0.01);
    EXPECT_LT(share.scale_up, 0.01);
  }
}

// 24 parts of 32 of an all-to-all over 32 ranks leave the node.
TEST(PortShare, OfWhatLeavesTheNode) {
  EXPECT_DOUBLE_EQ(bytes_out_of_node(OpKind::AllToAll, Bytes(32), kOnFourNodes, {}).value(),
                   8 * 24.0);
  EXPECT_DOUBLE_EQ(
      bytes_out_of_node(OpKind::AllToAll, Bytes(32), kOnFourNodes, {.remote = 0.5}).value(),
      4 * 24.0);
  EXPECT_DOUBLE_EQ(bytes_out_of_node(OpKind::AllGather, Bytes(32), kOnFourNodes, {}).value(), 31.0);
}

// Two neighbours of eight accelerators with four NICs share one whatever the others do.
TEST(CollectivePath, MembersThatAreAloneOnTheirNodeUseTheNearestNic) {
  const ClusterSpec cluster = load_cluster("aws-p4d");
  const auto remote = [&](std::int64_t groups) {
    return path_of({.size = 2, .per_node = 1, .nodes = 2, .groups_per_node = groups, .span = 2},
                   cluster)
        .remote;
  };
  EXPECT_EQ(remote(2), remote(1) * 0.5);
  EXPECT_EQ(remote(4), remote(2));
  EXPECT_EQ(remote(8), remote(2));
}

}  // namespace
}  // namespace shardwright::sim
