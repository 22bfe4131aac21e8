// Defaults for requests, and the requests that no plan can answer.
#pragma once

#include <vector>

#include "core/base/error.hpp"
#include "planner/search.hpp"

namespace shardwright::planner {

// Throws InputError with every number of the request that is out of range for its model and
// cluster; `where` of a problem is the name of the field ("global_batch").
void check_request(const PlanRequest& request);

// The formats that the accelerators do not multiply in, or that the stack does not train in. Of the
// request only the cluster, the stack, the precision and the limits count.
std::vector<Problem> precision_problems(const PlanRequest& request);

// Widens the limits to the values that the constraints name: `tp=16` beyond the scale-up domain,
// `sequence_parallel=false`, …
void adapt_limits(PlanRequest& request);

// The usual precision of a cluster: bf16, or fp32 on devices without a smaller format.
Precision usual_precision(const ClusterSpec& cluster);

// Completes a request for the whole of a cluster with a known number of nodes: all ranks of its
// pools, the model's longest sequence, a few sequences per rank. `request` has the model and the
// cluster.
void plan_for_all_of_it(PlanRequest& request);

}  // namespace shardwright::planner
