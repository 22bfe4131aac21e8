// Laws of the curves: overhead alone for nothing, the rate for large work, edges in between.
#include "sim/cost/curve_cost.hpp"

#include <gtest/gtest.h>

#include "sim/cost/collective_cost.hpp"
#include "sim/cost/kernel_cost.hpp"
#include "sim/cost/socket_cost.hpp"

namespace shardwright::sim {
namespace {

KernelCurve gemm_curve() {
  KernelCurve curve;
  curve.overhead = microseconds(10.0);
  curve.flop_rate = FlopPerSecond(1e10);
  curve.edge_m = curve.edge_n = curve.edge_k = 16.0;
  return curve;
}

TEST(CurveCost, ALargeProductRunsAtTheRate) {
  const GemmWork work{1 << 14, 1 << 14, 1 << 14};
  const Seconds time = curve_time(gemm_curve(), work);
  EXPECT_NEAR((work.flop() / time).value() / 1e10, 1.0, 0.01);
}

// Moving an operand takes as long as multiplying at the size of an edge.
TEST(CurveCost, AnEdgeOfItsOwnSizeDoublesTheTime) {
  const GemmWork narrow{16, 1 << 16, 1 << 16};
  const KernelCurve curve = gemm_curve();
  EXPECT_NEAR((curve_time(curve, narrow) - curve.overhead) / (narrow.flop() / curve.flop_rate), 2.0,
              0.01);
}

TEST(CurveCost, MaskedScoresCostAsMuchAsOthers) {
  KernelCurve curve;
  curve.kind = OpKind::Attention;
  curve.flop_rate = FlopPerSecond(1e10);
  curve.score = Seconds(1e-9);
  AttentionWork whole{2, 4, 4, 128, 128, 32, 32, 1.0, false};
  AttentionWork causal = whole;
  causal.score_share = 0.5;
  EXPECT_DOUBLE_EQ(curve_time(curve, whole).value(), curve_time(curve, causal).value());
}

TEST(CurveCost, RecomputationTakesTheForwardCurve) {
  AcceleratorSpec device;
  device.kernel_curves = {gemm_curve(), gemm_curve()};
  device.kernel_curves[1].phase = Phase::BackwardInput;
  EXPECT_EQ(curve_of(device, OpKind::Gemm, Phase::Recompute), &device.kernel_curves[0]);
  EXPECT_EQ(curve_of(device, OpKind::Gemm, Phase::BackwardInput), &device.kernel_curves[1]);
  EXPECT_EQ(curve_of(device, OpKind::Norm, Phase::Forward), nullptr);
}

ClusterSpec two_racks() {
  ClusterSpec cluster;
  cluster.accelerator.architecture = Architecture::Cpu;
  cluster.node.accelerators = cluster.node.scale_up.domain = 1;
  cluster.node.scale_up.bandwidth = gigabytes_per_second(10.0);
  cluster.node.scale_up.collective_overhead = Seconds(0);
  cluster.node.nic = {1, BytesPerSecond(1e8), 1.0};
  cluster.fabric.kind = FabricKind::LeafSpine;
  cluster.fabric.base_latency = Seconds(0);
  cluster.fabric.levels = {{2, 4.0, Seconds(0)}, {4, 1.0, Seconds(0)}};
  return cluster;
}

GroupPlacement hosts(std::int64_t members, std::int64_t stride) {
  GroupPlacement placement{members, 1, members, 1, (members - 1) * stride + 1};
  placement.grid.append(members, stride);
  return placement;
}

// A ring's links carry 2 (n - 1) / n of the buffer; between the racks one of its flows goes up,
// where two hosts share half of a link's speed.
TEST(SocketCost, RingsTakeWhatTheirSlowestLinkCarries) {
  const ClusterSpec cluster = two_racks();
  const Bytes bytes(1e8);
  const auto time = [&](const GroupPlacement& group) {
    return collective_cost(OpKind::AllReduce, bytes, group, cluster, StackSpec{}).time.value();
  };
  EXPECT_NEAR(time(hosts(2, 1)), 1.0, 1e-9);        // 1e8 over 1e8 in a rack
  EXPECT_NEAR(time(hosts(2, 2)), 4.0, 1e-9);        // two pairs share 5e7 up
  EXPECT_NEAR(time(hosts(4, 1)), 1.5 * 2.0, 1e-9);  // one flow has 5e7
}

TEST(SocketCost, AMeasuredCurveGoesBeforeTheFormula) {
  ClusterSpec cluster = two_racks();
  cluster.exchange_curves.push_back(
      {OpKind::AllReduce, 2, 2, 2, milliseconds(1.0), BytesPerSecond(1e9), Bytes(1), Bytes(1e9)});
  const auto time = [&](OpKind kind, std::int64_t stride) {
    return collective_cost(kind, Bytes(1e8), hosts(2, stride), cluster, StackSpec{}).time.value();
  };
  EXPECT_NEAR(time(OpKind::AllReduce, 1), 0.101, 1e-9);
  EXPECT_NEAR(time(OpKind::AllReduce, 2), 4.0, 1e-9);
  EXPECT_NEAR(time(OpKind::AllGather, 1), 0.5, 1e-9);
}

}  // namespace
}  // namespace shardwright::sim
