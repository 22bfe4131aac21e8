// The bound level: a lower bound on the step time of the event level, for pruning.
//
// For each stage: its first slot waits for one microbatch to pass the stages before it; its slots
// follow each other on one compute stream; its last gradient passes the stages before it. Then come
// the reduction that nothing hides, the gradient norm, on which all stages meet, and the optimizer.
// Other paths through the pipeline (pipeline_paths.hpp) are those of the first gradient, of rounds
// of microbatches, of messages on one channel and of the host, which has to issue all that runs.
// No step of the event level is shorter than any of these, so none is shorter than their maximum.
//
// The analytic level: the step time in closed form, for ranking plans.
//
// It takes the paths of the bound with likely instead of certain times: reductions that the slots
// do not hide, kernels that collectives slow down, gathers that the first forward pass does not
// hide, and the bubble that a schedule has with equal chunks beyond filling and draining.
#pragma once

#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/scenario.hpp"
#include "sim/step/stage_costs.hpp"

namespace shardwright::sim {

Seconds bound_step(const StageCosts& costs, const Plan& plan);

// `bound` is that of the same costs.
Seconds analytic_step(const StageCosts& costs, const Plan& plan, Seconds bound);

// The peak of the ranks of one part of the replicas on one pool.
struct PoolPeak {
  std::string pool;
  Bytes peak;
};

struct StepEstimate {
  // The highest peak of all stages: that of memory_replay.hpp.
  Bytes memory;
  Seconds bound, analytic;
  // Of a plan that places replicas, part by part; the second is of each stage.
  std::vector<PoolPeak> peaks{};
  std::vector<Seconds> computing{};
};

// Estimates a plan that breaks no rule.
StepEstimate estimate_step(const Scenario& scenario);

// The same of a plan that places replicas. Pools that are equal count as several.
StepEstimate estimate_replicas(const Scenario& scenario, ScheduleProfiles& profiles);

}  // namespace shardwright::sim
