#include "sim/cost/socket_cost.hpp"

#include <algorithm>
#include <cmath>

namespace shardwright::sim {
namespace {

// Hops that follow each other.
double hops_of(OpKind kind, double members) {
  switch (kind) {
    case OpKind::AllReduce:
      return 2.0 * (members - 1.0);
    case OpKind::AllGather:
      return members - 1.0;
    case OpKind::Broadcast:
      return std::ceil(std::log2(members));
    default:
      return 1.0;
  }
}

BytesPerSecond bandwidth_of(OpKind kind, const CollectivePath& path, const ScaleUpSpec& scale_up) {
  const bool message = kind == OpKind::Send || kind == OpKind::Receive;
  const bool ring = kind == OpKind::AllReduce || kind == OpKind::AllGather;
  const BytesPerSecond inside =
      scale_up.bandwidth * (ring ? scale_up.ring_efficiency : scale_up.pair_efficiency);
  if (path.nodes <= 1.0) return inside;
  if (message) return path.remote_member;
  return std::min(inside, ring ? path.remote : path.remote_pairwise);
}

}  // namespace

bool talks_over_sockets(const ClusterSpec& cluster) {
  return cluster.accelerator.architecture == Architecture::Cpu;
}

CollectiveCost socket_cost(OpKind kind, Bytes bytes, const CollectivePath& path,
                           const ClusterSpec& cluster) {
  const bool message = kind == OpKind::Send || kind == OpKind::Receive;
  const double hops = message ? 1.0 : hops_of(kind, path.members);
  const double remote_share =
      path.nodes > 1.0 ? std::max(1.0, path.nodes - 1.0) / std::max(1.0, path.members - 1.0) : 0.0;
  const Seconds hop = path.local_hop * (1.0 - remote_share) + path.remote_hop * remote_share;
  const double factor = message ? 1.0 : bus_factor(kind, static_cast<std::int64_t>(path.members));
  CollectiveCost cost;
  cost.time =
      path.overhead + hop * hops + bytes * factor / bandwidth_of(kind, path, cluster.node.scale_up);
  cost.algorithm = hops > 1.0 ? Algorithm::Ring : Algorithm::Direct;
  return cost;
}

}  // namespace shardwright::sim
