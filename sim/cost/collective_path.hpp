// What a group's placement leaves to it of the cluster's links.
#pragma once

#include <algorithm>

#include "core/base/units.hpp"
#include "core/spec/cluster_spec.hpp"
#include "sim/cost/placement.hpp"

namespace shardwright::sim {

// Bandwidths are per direction. Where the group lies on one node, the remote figures are zero.
struct CollectivePath {
  double members = 1, per_node = 1, nodes = 1;
  BytesPerSecond ring;             // bus bandwidth of rings inside a node
  BytesPerSecond in_switch;        // traffic per member of reductions in the scale-up switch
  BytesPerSecond pairwise;         // per member, to all others of the node at once
  BytesPerSecond remote;           // of all NICs that the group has on one node
  BytesPerSecond remote_member;    // of the NICs that one member can use
  BytesPerSecond remote_pairwise;  // `remote`, where every pair of nodes talks
  double channels = 1;             // at most, of one collective
  Seconds overhead;                // fixed cost of a collective
  Seconds local_hop;
  Seconds remote_hop;      // from a node of the group to the next one
  Seconds remote_far_hop;  // between any two; on a torus longer
};

// NICs of a node, and how many accelerators they serve.
struct NodeNics {
  double nics = 1, accelerators = 1;

  // Those that one accelerator can use.
  double of_member() const { return std::max(1.0, nics / accelerators); }
};

// Of these, how many a group has where all groups of its kind run at once. A member that is alone
// on its node uses the NIC nearest to it, with those of its neighbours that are members of such a
// group too: accelerators on the other NICs may be idle, as those of a pipeline's stages that do
// not send to another node.
double nics_of_group(const GroupPlacement& placement, const NodeNics& node);

CollectivePath path_of(const GroupPlacement& placement, const ClusterSpec& cluster);

}  // namespace shardwright::sim
