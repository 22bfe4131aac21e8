// What a group's place in a torus leaves to it of its nodes' links.
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
  double ring = 1.0;      // for rings through the group, along each axis that it lies on
  double pairwise = 1.0;  // where each node sends to all others
  double hops = 1.0;      // from a member to the next one
  double far_hops = 1.0;  // between two members, on average
};

// Of a group on several nodes of a job that has `placement.job_nodes` of them, on a fabric of kind
// Torus.
TorusPath torus_path(const GroupPlacement& placement, const FabricSpec& fabric);

}  // namespace shardwright::sim
