// The plan under which a run goes on when the number of its ranks has changed.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>

#include "core/spec/scenario.hpp"
#include "planner/search.hpp"

namespace shardwright::planner {

struct Replanned {
  Scenario scenario;
  PlanCandidate candidate;  // of the scenario's plan
};

// The fastest plan for `most_ranks` ranks, or for the largest number below it that has one, with
// the model, cluster, stack, precision, batch and sequences of `scenario`: so the run takes the
// same steps on the same data. Looks at the plans that our executor runs (docs/executor.md). None
// where no number of ranks has a plan, or `stop` was requested. Throws InputError for less than one
// rank.
std::optional<Replanned> replan(const Scenario& scenario, std::int64_t most_ranks,
                                const std::stop_token& stop = {});

}  // namespace shardwright::planner
