// Requests that no plan can answer.
#pragma once

#include "planner/search.hpp"

namespace shardwright::planner {

// Throws InputError with every number of the request that is out of range for its model and
// cluster; `where` of a problem is the name of the field ("global_batch").
void check_request(const PlanRequest& request);

// Widens the limits to the values that the constraints name: `tp=16` beyond the scale-up domain,
// `sequence_parallel=false`, …
void adapt_limits(PlanRequest& request);

}  // namespace shardwright::planner
