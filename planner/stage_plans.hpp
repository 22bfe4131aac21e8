// The plans of the stages of a run.
#pragma once

#include <vector>

#include "core/base/error.hpp"
#include "core/spec/run_spec.hpp"
#include "core/spec/scenario.hpp"

namespace shardwright::planner {

// The plan of each stage: that of the scenario with what the stage states. Adds as problems what a
// stage states wrongly and the rules that its plan breaks, below /stages.
std::vector<Plan> stage_plans(const Scenario& scenario, const std::vector<RunStage>& stages,
                              ProblemList& problems);

}  // namespace shardwright::planner
