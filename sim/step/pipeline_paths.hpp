// The paths through a pipeline that may decide how long its slots take, for the bound and for the
// analytic level (analytic.hpp). All times are in seconds from the start of the step; no path but
// the listed one is longer than in the event simulation.
#pragma once

#include <cstddef>
#include <vector>

#include "core/spec/plan.hpp"
#include "sim/step/stage_costs.hpp"

namespace shardwright::sim {

PipelineChains chain_chunks(const PlanContext& in, const StageCosts& costs);

// The likely time of the slots in the order of the schedule's list; 0 where the paths of the stages
// suffice.
double listed_time(const PlanContext& in, const StageCosts& costs, ScheduleProfiles& profiles);

// The paths of the stages of `costs`, whose other members are known. Below, `stage` counts these.
std::vector<StagePath> find_paths(const StageCosts& costs);

// The time at which the first stage has the last gradient, if the slots of `stage` end at `end`.
inline double drained(const StageCosts& costs, std::size_t stage, double end) {
  const StagePath& path = costs.paths[stage];
  // A stage that waits for its last gradient to be sent has computed it before.
  return end - costs.blocking_gradient(stage) - path.trailing_weights + path.drain;
}

// The time at which the first stage has the last gradient, by the messages between two stages,
// which pass one after the other.
double messages_drained(const StageCosts& costs, const Plan& plan);

// The time of a stage after its last gradient is reduced: it adds up gradients that other ranks
// than data-parallel ones know a part of, and computes its gradient norm.
inline double after_reduction(const StageCosts& costs, std::size_t stage) {
  const bool ties = stage == 0 || stage + 1 == costs.stages.size();
  return costs.stages[stage].states.copies + (ties ? costs.tie : 0.0) +
         costs.stages[stage].states.norm;
}

// The time at which the host of `stage` has issued all slots and the work after the last gradient's
// reduction has ended: on the first stage, to which the gradient of the last slot drains, or on the
// stage itself where weight gradients may be issued last.
inline double issued_and_finished(const StageCosts& costs, std::size_t stage) {
  const double issued = costs.stages[stage].launch;
  // Weight gradients may be issued after the last gradient.
  if (costs.profile->splits_backward) return issued + after_reduction(costs, stage);
  return issued + costs.paths[stage].drain + after_reduction(costs, 0);
}

}  // namespace shardwright::sim
