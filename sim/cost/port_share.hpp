// The shares of its accelerator's ports that a collective fills.
#pragma once

#include "core/base/units.hpp"
#include "core/op/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "sim/cost/placement.hpp"

namespace shardwright::sim {

// Shares of the most that an accelerator's ports carry in one direction, between 0 and 1.
struct PortShare {
  // The share of the rate at which long rings (all-to-alls: pairs) use the scale-up network.
  float scale_up = 0.0F;
  // The share of the accelerator's part of its node's NICs.
  float nic = 0.0F;

  bool operator==(const PortShare&) const = default;
};

// The bytes that a node sends to others for one collective or message of a group. `bytes` as in
// `CommunicationWork`, `tokens` as in `collective_cost`.
Bytes bytes_out_of_node(OpKind kind, Bytes bytes, const GroupPlacement& placement,
                        const TokenTraffic& tokens);

// The shares that a collective which takes `time` fills of the ports of a member. `bytes` as in
// `CommunicationWork`. A member sends the bytes of its bus factor (collective_cost.hpp), of which
// the share (k - 1) / k stays among the k members of a node if the group has several nodes; an
// all-to-all keeps the traffic to members of its own node there. Traffic that leaves a node goes
// through the NICs of all members there alike.
//
// Shares are 0 where no link is shared: the groups of a mesh have scale-up links of their own, and
// CPUs none.
PortShare port_share(OpKind kind, Bytes bytes, const GroupPlacement& placement,
                     const ClusterSpec& cluster, Seconds time, const TokenTraffic& tokens = {});

}  // namespace shardwright::sim
