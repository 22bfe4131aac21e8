#include "sim/cost/port_share.hpp"

#include <algorithm>

#include "sim/cost/collective_cost.hpp"
#include "sim/cost/socket_cost.hpp"

namespace shardwright::sim {
namespace {

// Of what a member sends, the share that goes to members of its own node.
double share_inside(OpKind kind, const GroupPlacement& placement) {
  if (placement.nodes == 1) return 1.0;
  const auto inside = static_cast<double>(placement.per_node - 1);
  return kind == OpKind::AllToAll ? inside / static_cast<double>(placement.size - 1)
                                  : inside / static_cast<double>(placement.per_node);
}

}  // namespace

double port_share(OpKind kind, Bytes bytes, const GroupPlacement& placement,
                  const ClusterSpec& cluster, Seconds time) {
  const bool shares = cluster.node.scale_up.kind != ScaleUpKind::Mesh;
  if (placement.size <= 1 || time <= Seconds(0) || !shares || talks_over_sockets(cluster))
    return 0.0;
  const ScaleUpSpec& links = cluster.node.scale_up;
  const Bytes sent = bytes * (bus_factor(kind, placement.size) * share_inside(kind, placement));
  const double reached = kind == OpKind::AllToAll ? links.pair_efficiency : links.ring_efficiency;
  return std::min(1.0, sent / (links.bandwidth * reached) / time);
}

}  // namespace shardwright::sim
