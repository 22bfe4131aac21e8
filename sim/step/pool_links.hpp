// The network that messages between the pools of a mixed cluster find (docs/models/pools.md).
#pragma once

#include "core/op/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/scenario.hpp"
#include "sim/cost/placement.hpp"

namespace shardwright::sim {

// A pool as messages to other pools find it: no link is faster than the network between pools.
ClusterSpec seen_from_outside(ClusterSpec pool, const PoolNetwork& between);

// place(), but that a pair of stages, and replicas on several pools, lie on two nodes at least,
// wherever their ranks would.
GroupPlacement place_between_pools(Group group, const Plan& plan, const ClusterSpec& cluster);

// The scenario with each stage or replica on the first of the pools that are equal to its own and
// that messages reach as fast as their own nodes; where one pool is left, on which all replicas run
// the same, a scenario of that pool alone.
Scenario with_equal_pools_as_one(Scenario scenario);

}  // namespace shardwright::sim
