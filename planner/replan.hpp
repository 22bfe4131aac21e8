// The plan for continuing a run whose number of ranks has changed.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>

#include "core/spec/scenario.hpp"
#include "planner/search.hpp"

namespace shardwright::planner {

struct Replanned {
  Scenario scenario;
  // The scenario's plan with its figures.
  PlanCandidate candidate;
};

// Returns the fastest plan for `most_ranks` ranks, or for the largest smaller number that has one,
// with the model, cluster, stack, precision, batch and sequences of `scenario`, so that the run
// takes the same steps on the same data. Considers the plans that our executor runs
// (docs/executor.md). Returns nothing if no number of ranks has a plan, or `stop` was requested.
// Throws InputError for less than one rank.
std::optional<Replanned> replan(const Scenario& scenario, std::int64_t most_ranks,
                                const std::stop_token& stop = {});

// The tokens per second of `scenario` on the `ranks` of its ranks that are left, over those on all of
// them: with as many data-parallel replicas as fit, and the largest batch up to the plan's that is
// whole microbatches of each. Zero if the rest holds no replica or the plan breaks a rule there.
// `step` is that of the whole plan.
double shrunk_speed(const Scenario& scenario, Seconds step, std::int64_t ranks);

}  // namespace shardwright::planner
