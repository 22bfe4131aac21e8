// The links between nodes that a step's collectives and messages share.
//
// A node (a scale-up domain) has ports to the network: as many as it has NICs, but no more than it
// has ranks; a port of several NICs uses them as one. Each rank has a port; ranks of a node with
// fewer NICs than ranks share them. A port has a link out and a link in. Above lie the links of
// oversubscribed switches (switch_links.hpp).
//
// A transfer (one collective of one group, or one message) is cut into rails: one flow for each
// member that a node holds, through that member's port on every node of the group. A rail wants
//
//   y = min(b / D, share)   bytes per second,
//
// where b are the bytes that leave a member's port in the priced time D, and `share` is what the
// price gives a member of its NICs and of the switches above when all groups of the kind run at
// once (b is that of one ring; hierarchical algorithms send less). So groups of one kind never slow
// each other down beyond their price; different kinds do.
//
// Known simplifications: a transfer's latency stretches with its bandwidth; an all-to-all uses no
// switch links (its price has them).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/units.hpp"
#include "core/op/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/plan.hpp"
#include "sim/cost/placement.hpp"
#include "sim/network/link.hpp"
#include "sim/step/lane_program.hpp"
#include "sim/step/switch_links.hpp"

namespace shardwright::sim {

// A NIC that is slower than its profile says, for the full level.
struct SlowNic {
  // The scale-up domain, in the order of the ranks.
  std::int64_t node = 0;
  // The NIC of the node, from 0.
  std::int64_t nic = 0;
  // The share of its bandwidth that is left, above 0 and at most 1.
  double bandwidth_ratio = 1.0;
};

// The places that a SlowNic can name: scale-up domains of the plan's ranks, NICs of each.
struct NicCounts {
  std::int64_t nodes = 1, per_node = 1;
};
NicCounts count_nics(const Plan& plan, const ClusterSpec& cluster);

// One flow of a transfer.
struct Rail {
  std::vector<LinkIndex> route;
  // The rate that it takes where nothing else is on its links.
  BytesPerSecond rate;
};

struct TransferShape {
  // Empty if the transfer stays on one node.
  std::vector<Rail> rails;
  // The factor on the priced time, by slow NICs.
  double slowdown = 1.0;
};

// Where a job lies on a fabric that it may share with others.
struct JobPlace {
  // The node of the fabric that each node of the job is, in the order of the ranks.
  std::vector<std::int64_t> nodes;
  // The number of the first link of the job's ports.
  LinkIndex first_port = 0;
  SwitchLinks switches;
};

class NodeLinks {
 public:
  // A job that is alone on the first nodes of its cluster.
  NodeLinks(const Plan& plan, const ClusterSpec& cluster, const std::vector<SlowNic>& slow_nics);
  // `cluster`: as the job sees it, whose prices it has.
  NodeLinks(const Plan& plan, const ClusterSpec& cluster, const std::vector<SlowNic>& slow_nics,
            JobPlace place);

  // Capacities by link of the job's ports, and of the switches where the job is alone.
  const std::vector<BytesPerSecond>& capacities() const { return capacities_; }

  // `members`: world ranks, ascending but for a message, which goes from the first to the second.
  TransferShape shape(const TransferKind& kind, std::span<const std::int32_t> members) const;

 private:
  std::int64_t port_of(std::int64_t rank) const;
  BytesPerSecond member_share(Group group) const;
  BytesPerSecond member_demand(const TransferKind& kind) const;
  void add_ports(const std::vector<SlowNic>& slow_nics, const NicCounts& counts);
  void add_switches(std::span<const std::int32_t> rail, bool message,
                    std::vector<LinkIndex>& route) const;
  Rail rail(std::span<const std::int32_t> members, bool message, bool switches) const;
  double slowest_port(std::span<const std::int32_t> members) const;

  std::int64_t domain_ = 1;
  // Ports of a node.
  std::int64_t ports_ = 1;
  // NICs of a node.
  double nics_ = 1.0;
  BytesPerSecond nic_;
  // Placements by Group.
  std::vector<GroupPlacement> placements_;
  // The rate of a member through NICs and switches, by Group.
  std::vector<BytesPerSecond> passing_;
  JobPlace place_;
  // The share that slow NICs leave, by port of the cluster.
  std::vector<double> port_ratio_;
  std::vector<BytesPerSecond> capacities_;
};

// Throws InputError if a NIC does not exist or keeps no bandwidth.
void check_slow_nics(const std::vector<SlowNic>& nics, const Plan& plan,
                     const ClusterSpec& cluster);

}  // namespace shardwright::sim
