// That no plan fits, and what would help.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "planner/search.hpp"

namespace shardwright::cli {

// {"reason", "shortfall_bytes", "needed_bytes", "available_bytes", "closes_it", "nearest"}.
nlohmann::ordered_json infeasible_json(const planner::NoFeasiblePlan& infeasible);

// The answer "none" is no result for a pipe to read: its reasons go to standard error.
void report_infeasible(const planner::NoFeasiblePlan& infeasible);

}  // namespace shardwright::cli
