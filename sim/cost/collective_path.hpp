// The part of the cluster's links that a group's placement leaves to it.
#pragma once

#include <algorithm>

#include "core/base/units.hpp"
#include "core/spec/cluster_spec.hpp"
#include "sim/cost/placement.hpp"

namespace shardwright::sim {

// Bandwidths are per direction. Where the group lies on one node, the remote figures are zero.
struct CollectivePath {
  double members = 1, per_node = 1, nodes = 1;
  // The bus bandwidth of long rings inside a node.
  BytesPerSecond ring;
  // The traffic per member of reductions in the scale-up switch.
  BytesPerSecond in_switch;
  // The bandwidth of a member to all others of the node at once.
  BytesPerSecond pairwise;
  // The bandwidth of all NICs that the group has on one node.
  BytesPerSecond remote;
  // The bandwidth of the NICs that one member can use.
  BytesPerSecond remote_member;
  // The `remote` of traffic between every pair of nodes.
  BytesPerSecond remote_pairwise;
  // The most channels of one collective.
  double channels = 1;
  // The fixed cost of a collective.
  Seconds overhead;
  Seconds local_hop;
  // The latency from a node of the group to the next one.
  Seconds remote_hop;
  // The latency between any two nodes, which is longer on a torus.
  Seconds remote_far_hop;
  // The steps of a ring that reduces beyond those that carry data.
  double reduction_tail = 0.0;
};

// NICs of a node, and how many accelerators they serve.
struct NodeNics {
  double nics = 1, accelerators = 1;

  // The NICs that one accelerator can use.
  double of_member() const { return std::max(1.0, nics / accelerators); }
};

// The number of these NICs that a group has where all groups of its kind run at once. A member that
// is alone on its node uses the NIC nearest to it, with those of its neighbours that are members of
// such a group too: accelerators on the other NICs may be idle, as those of a pipeline's stages
// that do not send to another node.
double nics_of_group(const GroupPlacement& placement, const NodeNics& node);

CollectivePath path_of(const GroupPlacement& placement, const ClusterSpec& cluster);

}  // namespace shardwright::sim
