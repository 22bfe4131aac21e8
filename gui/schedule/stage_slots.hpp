// The times of a schedule's slots in a timeline.
#pragma once

#include <optional>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/timeline/timeline.hpp"
#include "gui/schedule/schedule_gantt.hpp"

namespace shardwright::gui {

// Returns the time of each slot of each stage, in the order of the schedule. A slot lasts from the
// start of its first op on the stage's compute stream to the end of its last one, which includes
// waits for tensor-parallel collectives. Recomputation belongs to the backward pass.
//
// Returns nothing if the timeline lacks a stage or a slot. If a stage has several ranks, the first
// one counts.
std::optional<StageSlotTimes> stage_slots(const Timeline& timeline, const ModelSpec& model,
                                          const Plan& plan);

}  // namespace shardwright::gui
