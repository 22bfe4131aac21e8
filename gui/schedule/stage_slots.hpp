// When the slots of a plan's schedule ran, as a timeline shows it.
#pragma once

#include <optional>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/timeline/timeline.hpp"
#include "gui/schedule/schedule_gantt.hpp"

namespace shardwright::gui {

// For each slot of each stage, in the order of the schedule. A slot lasts from the start of the
// first op that its stage's compute stream runs for it to the end of the last one, so waits for
// tensor-parallel collectives count. Recomputation counts to the backward pass.
//
// Nothing if the timeline lacks a stage or a slot. Of several ranks of a stage the first counts.
std::optional<StageSlotTimes> stage_slots(const Timeline& timeline, const ModelSpec& model,
                                          const Plan& plan);

}  // namespace shardwright::gui
