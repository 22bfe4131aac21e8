// How long the stages of a plan take for a microbatch, as a timeline shows it.
#pragma once

#include <optional>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/timeline/timeline.hpp"
#include "gui/schedule/schedule_gantt.hpp"

namespace shardwright::gui {

// The mean over the microbatches, for each chunk of each stage. A slot lasts from the start of the
// first op that its stage's compute stream runs for it in a row to the end of the last one, so
// waits for tensor-parallel collectives count and waits for other stages do not. Recomputation
// counts to the backward pass; input and weight gradients that run interleaved share the time as
// their ops do.
//
// Nothing if the timeline lacks a stage or a chunk. Of several ranks of a stage the first counts.
std::optional<StageChunkTimes> stage_durations(const Timeline& timeline, const ModelSpec& model,
                                               const Plan& plan);

}  // namespace shardwright::gui
