// The plan for continuing a run whose number of ranks has changed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "core/spec/scenario.hpp"
#include "planner/search.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::planner {

struct Replanned {
  Scenario scenario;
  // The scenario's plan with its figures.
  PlanCandidate candidate;
};

// Returns the fastest plan for `most_ranks` ranks, or for the largest smaller number that has one,
// with the model, cluster, stack, precision, batch and sequences of `scenario`, so that the run
// takes the same steps on the same data. On a cluster of several pools, `most_ranks` are at most
// those of all of them (pool_counts.hpp). Considers the plans that our executor runs
// (docs/executor.md). Returns nothing if no number of ranks has a plan, or `stop` was requested.
// Throws InputError for less than one rank.
std::optional<Replanned> replan(const Scenario& scenario, std::int64_t most_ranks,
                                const std::stop_token& stop = {});

// The plans whose layouts a run may continue with on fewer ranks: its own, then the best of other
// degrees that a search finds for all of its ranks. A run restarts from a checkpoint, which any
// layout reads. Only its own once `stop` is requested.
std::vector<Plan> plans_for_fewer_ranks(const Scenario& scenario, const std::stop_token& stop = {});

// The tokens per second of `scenario` on the `ranks` of its ranks that are left, over those on all
// of them, which is at most 1: by the fastest of `plans`, each with as many data-parallel replicas
// as fit, and the largest batch up to the plan's that is whole microbatches of each. Zero if the
// rest holds no replica of any plan, or each breaks a rule or fills more than the memory there.
// `whole` is the step of the scenario.
double shrunk_speed(const Scenario& scenario, std::span<const Plan> plans,
                    const sim::StepResult& whole, std::int64_t ranks);

}  // namespace shardwright::planner
