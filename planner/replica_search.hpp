// Plans whose replicas lie on several pools of a cluster and share the batch by the speeds of these
// (docs/models/pools.md).
#pragma once

#include <cstdint>
#include <vector>

#include "core/spec/plan.hpp"
#include "planner/placed_plans.hpp"
#include "planner/search.hpp"

namespace shardwright::planner {

// Replicas on two or more pools, each of so many ranks. Their microbatches are open.
struct ReplicaPlacement {
  std::vector<PoolReplicas> parts;
  std::int64_t replica_ranks = 1;

  std::int64_t replicas() const;
};

// Every placement that the pools' sizes and scale-up domains allow, on up to so many accelerators.
// Without `all` those whose replicas divide a pool, and as many of them as fit: where the limit of
// accelerators leaves a choice, the first or the last pools are full.
std::vector<ReplicaPlacement> replica_placements(const ClusterSpec& cluster, std::int64_t gpus,
                                                 bool all);

struct ReplicaSearch {
  SearchCounts counts;
  // Numbers of placements, and of the plans that are faster than the compared one.
  std::int64_t placements = 0, faster = 0;
  // Every placement, and of each every way to share the batch.
  bool all = false;
  // The best of each placement and cut by the analytic level, best first.
  std::vector<LookedAtPlan> plans;
};

// Evaluates the plans by closed forms. A space of more than `whole_space` plans, each way to share
// the batch counted, is evaluated in part.
ReplicaSearch search_replicas(const PlanRequest& request, const PoolLayerCosts& known,
                              std::int64_t whole_space);

}  // namespace shardwright::planner
