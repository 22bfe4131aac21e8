// Finds the best plans for a cluster of several pools (docs/models/search.md).
//
// Candidates are the plans of each pool alone, by searches of their own, and plans whose stages or
// replicas lie on several pools. The latter are ranked by the analytic level, and the best of them
// simulated.
#pragma once

#include "planner/placements.hpp"
#include "planner/search.hpp"

namespace shardwright::planner {

// `request` has been checked, and its limits have the values of its constraints; its cluster has
// several pools.
SearchResult search_pools(const PlanRequest& request);

// The request for plans of one pool alone, on all of its accelerators that the request allows.
PlanRequest request_on_pool(const PlanRequest& request, const std::string& pool);

// A space of at most so many plans, each split of the layers counted, is evaluated as a whole.
inline constexpr std::int64_t kWholeSpace = 100'000;

// The best plan with stages on several pools by the analytic level, of those that fit.
struct PlacedBest {
  Plan plan;
  Seconds analytic;
  // The value of the objective at the analytic level.
  double score = 0.0;
};

// The part of search_pools() before simulations. Larger spaces than `whole_space` are evaluated in
// part.
std::optional<PlacedBest> best_placed(const PlanRequest& request,
                                      std::int64_t whole_space = kWholeSpace);

}  // namespace shardwright::planner
