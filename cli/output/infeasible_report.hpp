// The report that no plan fits, with the changes that would help.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "planner/search.hpp"

namespace shardwright::cli {

// {"reason", "shortfall_bytes", "needed_bytes", "available_bytes", "closes_it", "nearest"}.
nlohmann::ordered_json infeasible_json(const planner::PlanRequest& request,
                                       const planner::NoFeasiblePlan& infeasible);

// Prints the reason to standard error, so that a pipe does not read it as a result.
void report_infeasible(const planner::PlanRequest& request,
                       const planner::NoFeasiblePlan& infeasible);

}  // namespace shardwright::cli
