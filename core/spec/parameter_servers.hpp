// The nodes of the parameter servers of a plan.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/spec/cluster_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/precision.hpp"

namespace shardwright {

struct ServerNodes {
  // Accelerators of a node, at least 1.
  std::int64_t accelerators = 1;
  // Nodes of the workers, and those that run servers.
  std::int64_t workers = 1, servers = 1;
  // Server processes on all nodes together.
  std::int64_t processes = 1;
  bool dedicated = false;

  // Server processes on each of their nodes.
  double processes_of_node() const {
    return static_cast<double>(processes) / static_cast<double>(servers);
  }
  // Nodes that take part.
  std::int64_t all() const { return workers + (dedicated ? servers : 0); }
};

inline ServerNodes server_nodes(const Plan& plan, const ClusterSpec& cluster) {
  ServerNodes nodes;
  nodes.accelerators = std::max<std::int64_t>(1, cluster.accelerators_per_node());
  nodes.workers = (plan.world_size() + nodes.accelerators - 1) / nodes.accelerators;
  nodes.processes = plan.replicas.servers > 0 ? plan.replicas.servers : nodes.workers;
  nodes.dedicated = plan.replicas.server_place == ServerPlace::Dedicated;
  nodes.servers = nodes.dedicated ? nodes.processes : std::min(nodes.processes, nodes.workers);
  return nodes;
}

// Bytes that the servers hold of each parameter together: weights and both moments in fp32, the
// copy that replicas pull if it has fewer bits, and the gradient's sum, or what they receive of it.
inline Bytes server_state_bytes(const Plan& plan) {
  constexpr Bytes kFp32States = Bytes(16.0);
  const Bytes pulled = storage_bytes(plan.precision);
  return kFp32States + (pulled < Bytes(4.0) ? pulled : Bytes());
}

}  // namespace shardwright
