// The ways through a pipeline that may decide how long its slots take: of the bound (bound.hpp) and
// of the analytic rung (analytic.hpp). All in seconds from the start of the step; none is longer
// than in the event rung.
#pragma once

#include <cstddef>

#include "core/spec/plan.hpp"
#include "sim/step/stage_costs.hpp"

namespace shardwright::sim {

// Those of the stages of `costs`, whose other members are known. Below, `stage` counts these.
void find_paths(StageCosts& costs);

// The stage's first slot begins: a microbatch has passed the stages before it.
inline double filled(const StageCosts& costs, std::size_t stage) {
  return costs.paths[stage].filled;
}

// The first gradient comes back to the stage.
inline double returned(const StageCosts& costs, std::size_t stage) {
  return costs.paths[stage].returned;
}

// The stage's slots are through and, where sends block, their messages: they follow each other from
// the first one on, and from the first one that a gradient comes back for.
inline double slots_end(const StageCosts& costs, std::size_t stage) {
  return costs.paths[stage].slots_end;
}

// The first stage has the last gradient, if the slots of `stage` are through at `end`.
inline double drained(const StageCosts& costs, std::size_t stage, double end) {
  const StagePath& path = costs.paths[stage];
  // A stage that waits for its last gradient to be sent has computed it before.
  const double sending = costs.blocking && stage > 0 ? costs.message : 0.0;
  return end - sending - path.trailing_weights + path.drain;
}

// The same, of rounds: a stage with one chunk of which w microbatches are in flight starts a
// forward only after the gradient of w microbatches before has come back from the stages behind it.
// 0 where stages have several chunks.
inline double rounds_drained(const StageCosts& costs, std::size_t stage) {
  return costs.paths[stage].rounds_drained;
}

// The same, of the messages between the first two stages, which pass one after the other.
double messages_drained(const StageCosts& costs, const Plan& plan);

// After its last gradient is reduced a stage adds up what other ranks than data-parallel ones know
// a part of, and computes its gradient norm.
inline double after_reduction(const StageCosts& costs, std::size_t stage) {
  const bool ties = stage == 0 || stage + 1 == costs.stages.size();
  return costs.stages[stage].copies + (ties ? costs.tie : 0.0) + costs.stages[stage].norm;
}

// The host of `stage` has issued all slots, and what comes after the last gradient's reduction is
// through: on the first stage, which the gradient of the last slot drains to; on the stage itself
// where weight gradients may be issued last.
inline double issued_and_finished(const StageCosts& costs, std::size_t stage) {
  const double issued = costs.stages[stage].launch;
  // Weight gradients may be issued after the last gradient.
  if (costs.profile->splits_backward) return issued + after_reduction(costs, stage);
  return issued + costs.paths[stage].drain + after_reduction(costs, 0);
}

}  // namespace shardwright::sim
