// The ways through a pipeline that may decide how long its slots take: of the bound (bound.hpp) and
// of the analytic rung (analytic.hpp). All in seconds from the start of the step; none is longer
// than in the event rung.
#pragma once

#include <cstddef>

#include "core/spec/plan.hpp"
#include "sim/step/stage_costs.hpp"

namespace shardwright::sim {

// The stage's first slot begins: a microbatch has passed the stages before it.
double filled(const StageCosts& costs, std::size_t stage);

// The first gradient comes back to the stage.
double returned(const StageCosts& costs, std::size_t stage);

// The stage's slots are through and, where sends block, their messages: they follow each other from
// the first one on, and from the first one that a gradient comes back for.
double slots_end(const StageCosts& costs, std::size_t stage);

// The first stage has the last gradient, if the slots of `stage` are through at `end`.
double drained(const StageCosts& costs, std::size_t stage, double end);

// The same, of rounds: a stage with one chunk of which w microbatches are in flight starts a
// forward only after the gradient of w microbatches before has come back from the stages behind it.
// 0 where stages have several chunks.
double rounds_drained(const StageCosts& costs, std::size_t stage);

// The same, of the messages between the first two stages, which pass one after the other.
double messages_drained(const StageCosts& costs, const Plan& plan);

// After its last gradient is reduced a stage adds up what other ranks than data-parallel ones know
// a part of, and computes its gradient norm.
double after_reduction(const StageCosts& costs, std::size_t stage);

// The host of `stage` has issued all slots, and what comes after the last gradient's reduction is
// through: on the first stage, which the gradient of the last slot drains to; on the stage itself
// where weight gradients may be issued last.
double issued_and_finished(const StageCosts& costs, std::size_t stage);

}  // namespace shardwright::sim
