// The bound level: a lower bound on the step time of the event level, for pruning.
//
// For each stage: its first slot waits for one microbatch to pass the stages before it; its slots
// follow each other on one compute stream; its last gradient passes the stages before it. Then come
// the reduction that nothing hides, the gradient norm, on which all stages meet, and the optimizer.
// Other ways through the pipeline (pipeline_paths.hpp) are those of the first gradient, of rounds
// of microbatches, of messages on one channel and of the host, which has to issue all that runs.
// Each of these holds in the event level, so their maximum does.
#pragma once

#include "core/base/units.hpp"
#include "core/spec/plan.hpp"
#include "sim/step/stage_costs.hpp"

namespace shardwright::sim {

Seconds bound_step(const StageCosts& costs, const Plan& plan);

}  // namespace shardwright::sim
