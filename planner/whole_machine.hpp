// Defaults for requests that name only a model and a cluster.
#pragma once

#include "planner/search.hpp"

namespace shardwright::planner {

// The usual precision of a cluster: bf16, or fp32 on devices without a smaller format.
Precision usual_precision(const ClusterSpec& cluster);

// Completes a request for the whole of a cluster with a known number of nodes: all of its ranks,
// the model's longest sequence, a few sequences per rank. `request` has the model and the cluster.
void plan_for_all_of_it(PlanRequest& request);

}  // namespace shardwright::planner
