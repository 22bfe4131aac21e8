// The reason why a search found no plan, and the changes that would help.
#pragma once

#include "planner/plan_evaluation.hpp"
#include "planner/search.hpp"

namespace shardwright::planner {

NoFeasiblePlan explain_infeasible(const PlanRequest& request, const Evaluation& evaluation);

}  // namespace shardwright::planner
