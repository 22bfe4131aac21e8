// One step by the closed forms of the lower fidelity levels, for callers that look at single plans.
// The search keeps a StageCostCache for the plans of a cut (planner/plan_evaluation.hpp).
#pragma once

#include "core/base/units.hpp"
#include "core/spec/scenario.hpp"

namespace shardwright::sim {

struct StepEstimate {
  // The highest peak of all stages: that of memory_replay.hpp.
  Bytes memory;
  // The times of bound.hpp and of analytic.hpp.
  Seconds bound, analytic;
};

// Estimates a plan that `check_plan` accepts.
StepEstimate estimate_step(const Scenario& scenario);

}  // namespace shardwright::sim
