// The analytic level: the step time in closed form, for ranking plans.
//
// The ways of the bound (bound.hpp) with what is likely instead of what is certain: reductions that
// the slots do not hide, kernels that collectives slow down, gathers that the first forward pass
// does not hide, and the bubble that a schedule has with equal chunks beyond filling and draining.
#pragma once

#include "core/base/units.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/scenario.hpp"
#include "sim/step/stage_costs.hpp"

namespace shardwright::sim {

// `bound`: of the same costs.
Seconds analytic_step(const StageCosts& costs, const Plan& plan, Seconds bound);

struct StepEstimate {
  // The highest peak of all stages: that of memory_replay.hpp.
  Bytes memory;
  // The times of bound.hpp and of analytic.hpp.
  Seconds bound, analytic;
};

// Estimates a plan that `check_plan` accepts.
StepEstimate estimate_step(const Scenario& scenario);

}  // namespace shardwright::sim
