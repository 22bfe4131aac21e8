#include "sim/cost/collective_path.hpp"

#include <algorithm>
#include <cmath>

#include "sim/cost/torus_path.hpp"

namespace shardwright::sim {
namespace {

// NCCL's maintainers on one NIC: github.com/NVIDIA/nccl, issue 689.
constexpr double kChannelsPerNic = 2.0;

// The share of a scale-up network's bandwidth that `members` neighbours can use: all of it through
// a switch; on a mesh, each member has links to the others only.
double scale_up_share(const GroupPlacement& placement, const ClusterSpec& cluster) {
  if (cluster.node.scale_up.kind != ScaleUpKind::Mesh || placement.nodes > 1) return 1.0;
  const auto others = static_cast<double>(domain_size(cluster) - 1);
  return others > 0.0 ? static_cast<double>(placement.per_node - 1) / others : 1.0;
}

// Member nodes of the group below one switch of a level.
double nodes_below(const GroupPlacement& placement, std::int64_t level_nodes) {
  if (placement.grid.empty()) {
    const auto nodes = static_cast<double>(placement.nodes);
    const double spacing = static_cast<double>(placement.span) / nodes;
    return std::clamp(static_cast<double>(level_nodes) / spacing, 1.0, nodes);
  }
  std::int64_t below = 1;
  for (const auto& [count, stride] : placement.grid)
    below *= std::clamp<std::int64_t>(level_nodes / stride, 1, count);
  return static_cast<double>(below);
}

// True if all nodes that the group, or the pipeline of the pair, has members on are below one
// switch.
bool stays_below(const GroupPlacement& placement, std::int64_t level_nodes) {
  return extent_of(placement) <= level_nodes;
}

// The factor by which the thinnest level slows a pattern down in which a share `crossing(nodes
// below)` of the traffic that enters a switch from below leaves it upwards.
template <class Crossing>
double uplink_slowdown(const GroupPlacement& placement, const ClusterSpec& cluster,
                       Crossing crossing) {
  double slowdown = 1.0;
  for (const FabricLevel& level : cluster.fabric.levels) {
    const std::int64_t level_nodes = domains_below(level, cluster);
    if (stays_below(placement, level_nodes)) break;
    slowdown =
        std::max(slowdown, level.oversubscription * crossing(nodes_below(placement, level_nodes)));
  }
  return slowdown;
}

Seconds remote_latency(const GroupPlacement& placement, const ClusterSpec& cluster) {
  Seconds latency = cluster.fabric.base_latency;
  for (const FabricLevel& level : cluster.fabric.levels) {
    if (placement.span <= domains_below(level, cluster)) break;
    latency += level.latency * 2.0;
  }
  return latency;
}

// The part of a node's NICs that the links between its nodes leave to the group.
struct RemoteLinks {
  double ring = 0.0, pairwise = 0.0;
  Seconds hop, far_hop;
};

// One member node of a ring below each switch sends upwards; for all pairs, those beyond it do.
RemoteLinks over_switches(const GroupPlacement& placement, const ClusterSpec& cluster,
                          double nics) {
  const auto nodes = static_cast<double>(placement.nodes);
  const double ring_slowdown =
      uplink_slowdown(placement, cluster, [](double below) { return 1.0 / below; });
  const double pair_slowdown = uplink_slowdown(placement, cluster, [&](double below) {
    return (nodes - below) / std::max(1.0, nodes - 1.0);
  });
  const Seconds latency = remote_latency(placement, cluster);
  return {nics / ring_slowdown, nics / pair_slowdown, latency, latency};
}

// A router spreads what comes from the NICs of its node over the links.
RemoteLinks over_torus(const GroupPlacement& placement, const FabricSpec& fabric, double nics,
                       const NodeNics& node) {
  const TorusPath path = torus_path(placement, fabric);
  const double share = node.nics / static_cast<double>(placement.groups_per_node);
  return {std::min(nics, share * path.ring), std::min(nics, share * path.pairwise),
          fabric.base_latency * path.hops, fabric.base_latency * path.far_hops};
}

void add_remote(CollectivePath& path, const GroupPlacement& placement, const ClusterSpec& cluster) {
  const NodeSpec& node = cluster.node;
  const auto domain = static_cast<double>(domain_size(cluster));
  const NodeNics nics{
      static_cast<double>(node.nic.per_node) * domain / static_cast<double>(node.accelerators),
      domain};
  const double group_nics = nics_of_group(placement, nics);
  const bool torus = cluster.fabric.kind == FabricKind::Torus && !cluster.fabric.torus.empty();
  const RemoteLinks links = torus ? over_torus(placement, cluster.fabric, group_nics, nics)
                                  : over_switches(placement, cluster, group_nics);
  const BytesPerSecond messages = node.nic.bandwidth * node.nic.message_efficiency();
  path.remote = node.nic.bandwidth * (node.nic.efficiency * links.ring);
  path.remote_member =
      messages * (std::min(group_nics, nics.of_member()) * (links.ring / group_nics));
  path.remote_pairwise = messages * links.pairwise;
  path.remote_hop = links.hop;
  path.remote_far_hop = links.far_hop;
  path.channels = std::min(path.channels, std::max(1.0, kChannelsPerNic * group_nics));
}

}  // namespace

double nics_of_group(const GroupPlacement& placement, const NodeNics& node) {
  const auto groups = static_cast<double>(placement.groups_per_node);
  const auto members = static_cast<double>(placement.per_node);
  const double nics = std::min(node.nics / groups, node.of_member() * members);
  if (placement.per_node > 1) return nics;
  const double neighbours = std::min(groups, std::ceil(node.accelerators / node.nics));
  return std::min(nics, node.of_member() / neighbours);
}

CollectivePath path_of(const GroupPlacement& placement, const ClusterSpec& cluster) {
  const ScaleUpSpec& scale_up = cluster.node.scale_up;
  CollectivePath path;
  path.members = static_cast<double>(placement.size);
  path.per_node = static_cast<double>(placement.per_node);
  path.nodes = static_cast<double>(placement.nodes);
  const BytesPerSecond links = scale_up.bandwidth * scale_up_share(placement, cluster);
  path.ring = links * scale_up.ring_efficiency;
  path.in_switch = links * scale_up.in_network_efficiency;
  path.pairwise = links * scale_up.pair_efficiency;
  if (scale_up.peer_bandwidth > BytesPerSecond(0)) {
    const double peers = std::max(1.0, path.per_node - 1.0);
    path.pairwise = std::min(path.pairwise, scale_up.peer_bandwidth * peers);
  }
  path.channels = static_cast<double>(scale_up.channels);
  path.overhead = scale_up.collective_overhead;
  path.local_hop = scale_up.latency;
  if (placement.nodes > 1) add_remote(path, placement, cluster);
  return path;
}

}  // namespace shardwright::sim
