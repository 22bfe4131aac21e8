// The analytic rung: the step time in closed form, for ranking plans.
//
// That of the bound (bound.hpp), and what the bound leaves out because it may not happen: gathers
// that the first forward pass does not hide, and the bubble that a schedule has with equal chunks
// beyond filling and draining.
#pragma once

#include "core/base/units.hpp"
#include "core/spec/plan.hpp"
#include "sim/step/stage_costs.hpp"

namespace shardwright::sim {

// `bound`: of the same costs.
Seconds analytic_step(const StageCosts& costs, const Plan& plan, Seconds bound);

}  // namespace shardwright::sim
