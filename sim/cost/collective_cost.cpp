#include "sim/cost/collective_cost.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"

namespace shardwright::sim {
namespace {

constexpr Protocol kProtocols[] = {Protocol::LL, Protocol::LL128, Protocol::Simple};

// What a protocol costs, relative to a link's own latency and bandwidth. LL sends 4 bytes of flag
// with each 4 bytes of data, LL128 8 with each 120; Simple moves whole slices and synchronises in
// between. The ratios are those of NCCL's tuning tables (src/graph/tuning.cc).
struct ProtocolTraits {
  double base = 1.0;        // of the fixed cost
  double local_hop = 1.0;   // of a hop inside the node
  double remote_hop = 1.0;  // of a hop between nodes
  double bandwidth = 1.0;   // of the path's bandwidth
};

ProtocolTraits traits_of(Protocol protocol) {
  switch (protocol) {
    case Protocol::LL:
      return {1.0, 1.0, 1.0, 0.38};
    case Protocol::LL128:
      return {2.0, 3.0, 1.5, 0.92};
    case Protocol::Simple:
      return {1.3, 5.7, 5.2, 1.0};
  }
  return {};
}

// What the group's placement leaves of the links.
struct Path {
  double members = 1, per_node = 1, nodes = 1;
  BytesPerSecond local;   // bus bandwidth of a ring inside a node
  BytesPerSecond remote;  // of all NICs that the group has on one node
  BytesPerSecond single;  // of the NICs that one member has
  Seconds remote_latency;
};

double uplink_slowdown(const GroupPlacement& placement, const FabricSpec& fabric) {
  double slowdown = 1.0;
  const double stride = static_cast<double>(placement.span - 1) /
                        static_cast<double>(std::max<std::int64_t>(1, placement.nodes - 1));
  for (const FabricLevel& level : fabric.levels) {
    if (placement.span <= level.nodes) break;
    const double below = std::max(1.0, static_cast<double>(level.nodes) / std::max(1.0, stride));
    slowdown = std::max(slowdown, level.oversubscription / below);
  }
  return slowdown;
}

Path path_of(const GroupPlacement& placement, const ClusterSpec& cluster) {
  const NodeSpec& node = cluster.node;
  Path path;
  path.members = static_cast<double>(placement.size);
  path.per_node = static_cast<double>(placement.per_node);
  path.nodes = static_cast<double>(placement.nodes);
  path.local = node.scale_up.bandwidth * node.scale_up.ring_efficiency;
  if (placement.nodes == 1) return path;

  const auto domain = static_cast<double>(domain_size(cluster));
  const double nics =
      static_cast<double>(node.nic.per_node) * domain / static_cast<double>(node.accelerators);
  const double per_member = std::max(1.0, nics / domain);
  const double share = nics / static_cast<double>(placement.groups_per_node);
  const BytesPerSecond nic =
      node.nic.bandwidth * (node.nic.efficiency / uplink_slowdown(placement, cluster.fabric));
  path.remote = nic * std::min(share, per_member * path.per_node);
  path.single = nic * std::min(share, per_member);
  path.remote_latency = cluster.fabric.base_latency;
  for (const FabricLevel& level : cluster.fabric.levels)
    if (placement.span > level.nodes) path.remote_latency += level.latency * 2.0;
  return path;
}

CollectiveCost ring_cost(OpKind kind, Bytes bytes, const Path& path, const ClusterSpec& cluster) {
  const double rounds = kind == OpKind::AllReduce ? 2.0 : 1.0;
  const double steps = rounds * (path.members - 1.0);
  const double remote_steps = path.nodes > 1.0 ? rounds * (path.nodes - 1.0) : 0.0;
  CollectiveCost best{.time = infinite<Seconds>()};
  for (const Protocol protocol : kProtocols) {
    const ProtocolTraits traits = traits_of(protocol);
    BytesPerSecond bus = path.local * traits.bandwidth;
    if (path.nodes > 1.0) bus = std::min(bus, path.remote * traits.bandwidth);
    const ScaleUpSpec& links = cluster.node.scale_up;
    const Seconds latency = links.collective_overhead * traits.base +
                            links.latency * (traits.local_hop * (steps - remote_steps)) +
                            path.remote_latency * (traits.remote_hop * remote_steps);
    const Seconds time =
        latency + bytes * bus_factor(kind, static_cast<std::int64_t>(path.members)) / bus;
    if (time < best.time) best = {time, Algorithm::Ring, protocol, {}};
  }
  return best;
}

CollectiveCost direct_cost(OpKind kind, Bytes bytes, const Path& path, const ClusterSpec& cluster) {
  const ScaleUpSpec& links = cluster.node.scale_up;
  const bool pair = kind != OpKind::AllToAll;
  Seconds moving, latency = links.collective_overhead + links.latency;
  if (pair) {
    moving = bytes / (path.nodes > 1.0 ? path.single : path.local);
    if (path.nodes > 1.0) latency += path.remote_latency;
  } else {
    moving = bytes * ((path.per_node - 1.0) / path.members) / path.local;
    if (path.nodes > 1.0) {
      const double outside = (path.members - path.per_node) / path.members;
      moving = std::max(moving, bytes * (outside * path.per_node) / path.remote);
      latency += path.remote_latency;
    }
  }
  return {latency + moving, Algorithm::Direct, Protocol::Simple, {}};
}

}  // namespace

const char* name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::None:
      return "none";
    case Algorithm::Ring:
      return "ring";
    case Algorithm::Tree:
      return "tree";
    case Algorithm::Nvls:
      return "nvls";
    case Algorithm::NvlsTree:
      return "nvls_tree";
    case Algorithm::CollNet:
      return "collnet";
    case Algorithm::Hierarchical:
      return "hierarchical";
    case Algorithm::Direct:
      return "direct";
  }
  return "";
}

const char* name_of(Protocol protocol) {
  switch (protocol) {
    case Protocol::LL:
      return "ll";
    case Protocol::LL128:
      return "ll128";
    case Protocol::Simple:
      return "simple";
  }
  return "";
}

double bus_factor(OpKind kind, std::int64_t members) {
  const auto n = static_cast<double>(members);
  switch (kind) {
    case OpKind::AllReduce:
      return 2.0 * (n - 1.0) / n;
    case OpKind::AllGather:
    case OpKind::ReduceScatter:
    case OpKind::AllToAll:
      return (n - 1.0) / n;
    default:
      return 1.0;
  }
}

CollectiveCost collective_cost(OpKind kind, Bytes bytes, const GroupPlacement& placement,
                               const ClusterSpec& cluster, const StackSpec&,
                               std::optional<Algorithm>) {
  SHARDWRIGHT_CHECK(is_communication(kind), "not a communication");
  if (placement.size <= 1 || bytes <= Bytes(0)) return {};
  const Path path = path_of(placement, cluster);
  const bool direct = kind == OpKind::AllToAll || kind == OpKind::Send || kind == OpKind::Receive;
  CollectiveCost cost =
      direct ? direct_cost(kind, bytes, path, cluster) : ring_cost(kind, bytes, path, cluster);
  cost.bus_bandwidth = bytes * bus_factor(kind, placement.size) / cost.time;
  return cost;
}

Seconds collective_time(OpKind kind, Bytes bytes, const GroupPlacement& placement,
                        const ClusterSpec& cluster, const StackSpec& stack) {
  return collective_cost(kind, bytes, placement, cluster, stack).time;
}

}  // namespace shardwright::sim
