// The part of its nodes' links that a group's place in a torus leaves to it.
//
// A node's bandwidth is spread evenly over the 2 a directions of its a axes, as in
// sim/network/topology.hpp. All groups of one kind communicate at once, so that ways that pass
// through the nodes of other groups are shared with theirs. Equations: docs/models/collectives.md.
#pragma once

#include "core/spec/cluster_spec.hpp"
#include "sim/cost/placement.hpp"

namespace shardwright::sim {

// Shares are of a node's bandwidth, at most 1; hops are links of the torus, at least 1. Of two
// members, both shares are those of messages between them.
struct TorusPath {
  // The share for rings through the group, along each axis that it lies on.
  double ring = 1.0;
  // The share where each node sends to all others.
  double pairwise = 1.0;
  // Hops from a member to the next one.
  double hops = 1.0;
  // Hops between two members, on average.
  double far_hops = 1.0;
};

// Returns the path of a group on several nodes of a job that has `placement.job_nodes` of them, on
// a fabric of kind Torus.
TorusPath torus_path(const GroupPlacement& placement, const FabricSpec& fabric);

}  // namespace shardwright::sim
