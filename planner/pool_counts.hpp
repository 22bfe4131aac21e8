// Mixed clusters with other numbers of nodes in their pools: fleets that grow, and what is left of
// a fleet (docs/models/pools.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/spec/cluster_spec.hpp"

namespace shardwright::planner {

// A fleet of at most `gpus` accelerators. If `pool` is empty, all pools grow in proportion to their
// nodes: the next node is that of the pool with the least (nodes + 1/2) / (nodes in `cluster`), the
// earlier one of equals, until it does not fit, so that no pool of a larger fleet is smaller.
// Otherwise the other pools stay as they are, and this one fills the rest. Pools without nodes are
// left out.
//
// Throws InputError if a pool states no nodes, if there is no pool of this name, and for fewer
// accelerators than a node has beside the pools that stay.
ClusterSpec grown_to(const ClusterSpec& cluster, const std::string& pool, std::int64_t gpus);

// The accelerators of all pools, each of which has a number of nodes.
std::int64_t accelerators_of(const ClusterSpec& cluster);

// What is left of a cluster with so many accelerators in each of these pools, in whole nodes; of
// fewer than a node, a smaller node. Pools without any are left out.
//
// Throws InputError for a pool that the cluster does not have or that has fewer, and if nothing is
// left.
ClusterSpec left_of(const ClusterSpec& cluster, const std::map<std::string, std::int64_t>& left);

}  // namespace shardwright::planner
