// Plans whose stages lie on several pools of a cluster, with layers split by the speeds of these
// (docs/models/pools.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/placed_plans.hpp"
#include "planner/search.hpp"

namespace shardwright::planner {

struct StageSearch {
  SearchCounts counts;
  PlacementSearch placements;
  // The number of plans that are faster than the compared one.
  std::int64_t faster = 0;
  // Best first, by the analytic level.
  std::vector<LookedAtPlan> plans;
};

// Evaluates the plans by closed forms and returns the `most` best. A space of more than
// `whole_space` plans, each split of the layers counted, is evaluated in part.
StageSearch search_stages(const PlanRequest& request, const PoolLayerCosts& known,
                          std::int64_t whole_space, std::size_t most);

}  // namespace shardwright::planner
