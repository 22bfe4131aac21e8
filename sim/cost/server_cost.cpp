#include "sim/cost/server_cost.hpp"

#include <algorithm>
#include <array>

#include "sim/cost/collective_path.hpp"
#include "sim/cost/kernel_cost.hpp"
#include "sim/cost/placement.hpp"
#include "sim/cost/socket_cost.hpp"

namespace shardwright::sim {
namespace {

// What comes in is added to a sum that is read and written.
constexpr double kSummedTraffic = 3.0;

// Rates of a node of servers, of one of workers, and of one rank.
struct ServerRates {
  BytesPerSecond node, rank, memory, inside;
  Seconds latency;
};

BytesPerSecond server_memory(const ServerNodes& nodes, const ClusterSpec& cluster) {
  if (!talks_over_sockets(cluster))
    return cluster.node.host.memory_bandwidth * kHostUpdateEfficiency;
  // Where ranks are CPUs, the profile states the bandwidth of one process.
  return cluster.accelerator.memory_bandwidth *
         (cluster.accelerator.efficiency.memory * nodes.processes_of_node());
}

// All pairs of nodes talk at once. A node is a part of its scale-up domain.
CollectivePath path_between(const ServerNodes& nodes, const ClusterSpec& cluster) {
  const std::int64_t domain = domain_size(cluster);
  const std::int64_t domains =
      nodes.all() == 1
          ? 1
          : std::max<std::int64_t>(2, (nodes.all() * nodes.accelerators + domain - 1) / domain);
  GroupPlacement all;
  all.size = domains * domain;
  all.per_node = domain;
  all.nodes = all.span = domains;
  return path_of(all, cluster);
}

ServerRates rates_of(const ServerNodes& nodes, const ClusterSpec& cluster) {
  const NodeSpec& node = cluster.node;
  const CollectivePath path = path_between(nodes, cluster);
  const auto accelerators = static_cast<double>(nodes.accelerators);
  const auto nics = static_cast<double>(node.nic.per_node);
  ServerRates rates;
  rates.node = path.remote_pairwise * (accelerators / static_cast<double>(domain_size(cluster)));
  rates.rank = rates.node * std::min(1.0, std::max(1.0, nics / accelerators) / nics);
  rates.memory = server_memory(nodes, cluster);
  rates.inside = talks_over_sockets(cluster)
                     ? path.pairwise
                     : node.host.accelerator_link * cluster.accelerator.efficiency.host_link;
  rates.latency = path.overhead + (nodes.all() > 1 ? path.remote_far_hop : path.local_hop);
  return rates;
}

// The ranks that push or pull at once, and those of them on one node.
struct Senders {
  double ranks = 1.0, on_node = 1.0;
};

Senders senders_of(const Plan& plan, const ClusterSpec& cluster) {
  const std::int64_t world = plan.world_size();
  const std::int64_t ranks = plan.replicas.stale() ? world / plan.dp : world;
  return {static_cast<double>(ranks),
          static_cast<double>(std::min(ranks, cluster.ranks_per_node(world)))};
}

// The share of a node of servers' traffic that comes from other nodes. Where the senders are on
// fewer nodes than the servers, some node gets all of it from others.
double remote_part(const ServerNodes& nodes, const Senders& senders) {
  if (nodes.dedicated) return 1.0;
  const double sending_nodes =
      std::max(1.0, senders.ranks / static_cast<double>(nodes.accelerators));
  if (sending_nodes < static_cast<double>(nodes.servers)) return 1.0;
  return std::max(0.0, senders.ranks - senders.on_node) / senders.ranks;
}

Seconds over(Bytes bytes, BytesPerSecond rate) {
  return bytes > Bytes() && rate > BytesPerSecond() ? bytes / rate : Seconds();
}

}  // namespace

ServerTransfer server_transfer(OpKind kind, Bytes bytes, const Plan& plan,
                               const ClusterSpec& cluster) {
  if (bytes <= Bytes()) return {};
  const ServerNodes nodes = server_nodes(plan, cluster);
  const ServerRates rates = rates_of(nodes, cluster);
  const Senders senders = senders_of(plan, cluster);
  const Bytes of_node = bytes * (senders.ranks / static_cast<double>(nodes.servers));
  const double remote = remote_part(nodes, senders);
  // What a node's own server holds does not leave it.
  const bool each_has_one = !nodes.dedicated && nodes.servers == nodes.workers;
  const double leaving = each_has_one ? 1.0 - 1.0 / static_cast<double>(nodes.servers) : 1.0;
  const bool sums = kind == OpKind::Push && !plan.replicas.stale();
  const double touched = sums ? kSummedTraffic : 1.0;
  const Bytes inside = talks_over_sockets(cluster)
                           ? of_node * ((1.0 - remote) / nodes.processes_of_node())
                       : nodes.dedicated ? Bytes()
                                         : bytes * (1.0 - leaving);
  ServerTransfer transfer;
  transfer.nics = over(of_node * remote, rates.node);
  transfer.memory = over(of_node * touched, rates.memory);
  const Seconds worker =
      over(bytes * (leaving * senders.on_node), std::min(rates.node, rates.rank * senders.on_node));
  const std::array<Seconds, 4> parts = {transfer.nics, nodes.all() > 1 ? worker : Seconds(),
                                        transfer.memory, over(inside, rates.inside)};
  const auto longest = std::max_element(parts.begin(), parts.end());
  transfer.limit = static_cast<ServerLimit>(longest - parts.begin());
  transfer.time = rates.latency + *longest;
  return transfer;
}

Seconds server_transfer_time(OpKind kind, Bytes bytes, const Plan& plan, const ClusterSpec& cluster,
                             const StackSpec& stack) {
  return server_transfer(kind, bytes, plan, cluster).time / stack.communication.collective_ratio;
}

Seconds server_update_time(const MemoryWork& of_rank, const Plan& plan,
                           const ClusterSpec& cluster) {
  const ServerNodes nodes = server_nodes(plan, cluster);
  const double ranks = static_cast<double>(plan.tp * plan.pp);
  return (of_rank.read + of_rank.written) * (ranks / static_cast<double>(nodes.servers)) /
         server_memory(nodes, cluster);
}

}  // namespace shardwright::sim
