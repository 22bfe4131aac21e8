// The timeline of a simulated step.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

#include "core/program/program.hpp"
#include "core/spec/scenario.hpp"
#include "core/timeline/timeline.hpp"
#include "sim/step/folded_replay.hpp"
#include "sim/step/prices.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::sim {

struct FullReplay;

// Timelines of more spans than this take gigabytes, and no window shows them.
inline constexpr std::uint64_t kMostSpans = 4'000'000;

// The number of spans in a timeline of one rank of each stage and of `further_ranks`.
std::uint64_t count_spans(const Program& program,
                          const std::vector<std::int64_t>& further_ranks = {});

// Shows the first rank of each stage. `replay` must be that of the same program and prices, with
// `ReplayOptions::keep_finish_times`. A send and its receive have the same span in time: that of
// the message.
Timeline predicted_timeline(const Program& program, const Prices& prices,
                            const FoldedReplay& replay);

// Shows the ranks that the full replay of the same program watched.
Timeline predicted_timeline(const Program& program, const FullReplay& replay);

// A step of the event simulation with all that it is drawn from.
struct TracedStep {
  Program program;
  StepResult result;
  Timeline timeline;
};

// Lowers and replays the plan once. Throws RuntimeFailure for a step of more than `kMostSpans` ops.
// Returns nothing once `stop` is requested.
std::optional<TracedStep> trace_step(const Scenario& scenario, const std::stop_token& stop = {});

}  // namespace shardwright::sim
