#include "sim/cost/port_share.hpp"

#include <algorithm>

#include "sim/cost/collective_cost.hpp"
#include "sim/cost/collective_path.hpp"
#include "sim/cost/socket_cost.hpp"

namespace shardwright::sim {
namespace {

// The share of a member's traffic that goes to members of its own node.
double share_inside(OpKind kind, const GroupPlacement& placement) {
  // Parameter servers are reached through the NICs.
  if (is_server_transfer(kind)) return 0.0;
  if (placement.nodes == 1) return 1.0;
  const auto inside = static_cast<double>(placement.per_node - 1);
  return kind == OpKind::AllToAll ? inside / static_cast<double>(placement.size - 1)
                                  : inside / static_cast<double>(placement.per_node);
}

Bytes sent_inside(OpKind kind, Bytes bytes, const GroupPlacement& placement,
                  const TokenTraffic& tokens) {
  // Nodes spread what comes to them once for several members.
  if (tokens.local < 1.0) {
    const auto members = static_cast<double>(placement.per_node);
    return bytes * (tokens.local * (members - 1.0) / members);
  }
  return bytes * (bus_factor(kind, placement.size) * share_inside(kind, placement));
}

BytesPerSecond scale_up_port(OpKind kind, const ScaleUpSpec& links) {
  return links.bandwidth *
         (kind == OpKind::AllToAll ? links.pair_efficiency : links.ring_efficiency);
}

// The share of a member in the NICs, as sim/cost/collective_path.cpp gives these to the members of
// a group.
BytesPerSecond nic_port(const GroupPlacement& placement, const ClusterSpec& cluster) {
  const NodeSpec& node = cluster.node;
  const auto domain = static_cast<double>(domain_size(cluster));
  const double nics =
      static_cast<double>(node.nic.per_node) * domain / static_cast<double>(node.accelerators);
  const double group_nics = nics_of_group(placement, {nics, domain});
  return node.nic.bandwidth *
         (node.nic.efficiency * group_nics / static_cast<double>(placement.per_node));
}

float filled(Bytes bytes, BytesPerSecond port, Seconds time) {
  return static_cast<float>(std::min(1.0, bytes / port / time));
}

}  // namespace

Bytes bytes_out_of_node(OpKind kind, Bytes bytes, const GroupPlacement& placement,
                        const TokenTraffic& tokens) {
  if (is_server_transfer(kind)) return bytes * static_cast<double>(placement.per_node);
  if (kind != OpKind::AllToAll) return bytes * bus_factor(kind, placement.size);
  const double outside = static_cast<double>(placement.size - placement.per_node) /
                         static_cast<double>(placement.size);
  return bytes * (outside * tokens.remote * static_cast<double>(placement.per_node));
}

PortShare port_share(OpKind kind, Bytes bytes, const GroupPlacement& placement,
                     const ClusterSpec& cluster, Seconds time, const TokenTraffic& tokens) {
  PortShare share;
  if (placement.size <= 1 || time <= Seconds(0) || talks_over_sockets(cluster)) return share;
  if (cluster.node.scale_up.kind != ScaleUpKind::Mesh) {
    share.scale_up = filled(sent_inside(kind, bytes, placement, tokens),
                            scale_up_port(kind, cluster.node.scale_up), time);
  }
  if (placement.nodes > 1) {
    const Bytes sent =
        bytes_out_of_node(kind, bytes, placement, tokens) / static_cast<double>(placement.per_node);
    share.nic = filled(sent, nic_port(placement, cluster), time);
  }
  return share;
}

}  // namespace shardwright::sim
