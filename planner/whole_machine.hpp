// What is planned for where nothing is said but the model and the cluster.
#pragma once

#include "planner/search.hpp"

namespace shardwright::planner {

// What a cluster computes in: bf16, or fp32 on devices that have nothing smaller.
Precision usual_precision(const ClusterSpec& cluster);

// A cluster of so many nodes is planned for as a whole: all of its ranks, the model's longest
// sequence, a few sequences for each rank. `request` has the model and the cluster.
void plan_for_all_of_it(PlanRequest& request);

}  // namespace shardwright::planner
