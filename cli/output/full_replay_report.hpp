// The result of the full level for single ranks, as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/output/page.hpp"
#include "core/spec/plan.hpp"
#include "sim/step/full_replay.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::cli {

// Adds the steps of the watched ranks, the rank that computes longest, and the delay from shared
// links.
void add_ranks(Page& page, const Plan& plan, const sim::StepResult& result,
               const sim::FullReplay& replay);

// {"slowest_rank", "contention_delay_s", "ranks": [{"rank", "stage", "finish_s", "streams",
// "memory_bytes", and for watched ranks "time"}]}
nlohmann::ordered_json full_replay_json(const Plan& plan, const sim::StepResult& result,
                                        const sim::FullReplay& replay);

}  // namespace shardwright::cli
