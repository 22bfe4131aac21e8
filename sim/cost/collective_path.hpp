// What a group's placement leaves to it of the cluster's links.
#pragma once

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
  Seconds remote_hop;
};

CollectivePath path_of(const GroupPlacement& placement, const ClusterSpec& cluster);

}  // namespace shardwright::sim
