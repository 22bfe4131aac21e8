// The analytic rung: the step time in closed form, for ranking plans.
//
// That of the bound (bound.hpp), and what the bound leaves out because it may not happen: pipeline
// messages between all neighbours of a steady state, gathers that the first forward pass does not
// hide, reductions of schedules whose order the bound does not know.
#pragma once

#include "core/base/units.hpp"
#include "core/spec/plan.hpp"
#include "sim/step/stage_costs.hpp"

namespace shardwright::sim {

Seconds analytic_step(const StageCosts& costs, const Plan& plan);

}  // namespace shardwright::sim
