// Collectives of CPUs over sockets, as Gloo runs them (github.com/facebookincubator/gloo).
//
//   all-reduce, all-gather:  a ring, 2 (n - 1) or n - 1 steps
//   reduce-scatter, all-to-all:  each member exchanges with each other one, all at once
//   broadcast:  a binomial tree
//   message:  one hop
//
//   time = overhead + hops * latency + bytes * bus factor / bandwidth
//
// The bandwidth is the slowest on the way: that of the node's memory, of a network card, of a
// switch's share. There are no protocols to choose from, as NCCL has them.
#pragma once

#include "core/spec/cluster_spec.hpp"
#include "sim/cost/collective_cost.hpp"
#include "sim/cost/collective_path.hpp"

namespace shardwright::sim {

// True for clusters whose ranks compute on CPUs.
bool talks_over_sockets(const ClusterSpec& cluster);

// Time and algorithm.
CollectiveCost socket_cost(OpKind kind, Bytes bytes, const CollectivePath& path,
                           const ClusterSpec& cluster);

}  // namespace shardwright::sim
