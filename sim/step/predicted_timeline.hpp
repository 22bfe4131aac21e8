// The timeline of a simulated step.
#pragma once

#include "core/program/program.hpp"
#include "core/timeline/timeline.hpp"
#include "sim/step/folded_replay.hpp"
#include "sim/step/prices.hpp"

namespace shardwright::sim {

struct FullReplay;

// The first rank of each stage. `replay` must be that of the same program and prices, with
// `ReplayOptions::keep_finish_times`. A send and its receive have the same span in time: that of
// the message.
Timeline predicted_timeline(const Program& program, const Prices& prices,
                            const FoldedReplay& replay);

// The ranks that the full replay of the same program watched.
Timeline predicted_timeline(const Program& program, const FullReplay& replay);

}  // namespace shardwright::sim
