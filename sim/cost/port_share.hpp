// How much of its accelerator's scale-up port a collective fills.
#pragma once

#include "core/base/units.hpp"
#include "core/program/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "sim/cost/placement.hpp"

namespace shardwright::sim {

// The share of what long rings (all-to-alls: pairs) move through a member's port to the scale-up
// network, one direction, that a collective moves in `time`, between 0 and 1.
// `bytes` as in `CommunicationWork`. A member sends the bytes of its bus factor
// (collective_cost.hpp), of which the share (k - 1) / k stays among the k members of a node if the
// group has several nodes; of an all-to-all what goes to members of its own node.
//
// 0 where no link is shared: the groups of a mesh have links of their own, and CPUs none.
double port_share(OpKind kind, Bytes bytes, const GroupPlacement& placement,
                  const ClusterSpec& cluster, Seconds time);

}  // namespace shardwright::sim
