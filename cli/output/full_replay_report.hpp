// What the full level says of single ranks, as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/output/page.hpp"
#include "core/spec/plan.hpp"
#include "sim/step/full_replay.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::cli {

// The watched ranks' steps, which rank sets the pace, and what waiting for links costs.
void add_ranks(Page& page, const Plan& plan, const sim::StepResult& result,
               const sim::FullReplay& replay);

// {"slowest_rank", "contention_delay_s", "ranks": [{"rank", "stage", "finish_s", "streams",
// "memory_bytes", and of watched ranks "time"}]}
nlohmann::ordered_json full_replay_json(const Plan& plan, const sim::StepResult& result,
                                        const sim::FullReplay& replay);

}  // namespace shardwright::cli
