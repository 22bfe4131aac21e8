// A pipeline schedule as boxes in time: the slots of each stage and its bubbles. All times
// are in seconds. This file knows no widget.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/schedule/pipeline_schedule.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/timeline/timeline.hpp"
#include "gui/models/table_text.hpp"
#include "gui/style/palette.hpp"

namespace shardwright::gui {

// Slots that run as a pair share the height of their row.
enum class GanttLane : std::uint8_t { Whole, Upper, Lower };

struct GanttBox {
  SlotPhase phase = SlotPhase::Forward;
  std::int32_t chunk = 0;
  std::int32_t microbatch = 0;
  double start = 0.0, finish = 0.0;
  GanttLane lane = GanttLane::Whole;

  bool operator==(const GanttBox&) const = default;
};

struct GanttStage {
  // The boxes are in the order of the schedule, which is that of time.
  std::vector<GanttBox> boxes;
  double busy = 0.0;
  // The share of the whole time in which the stage waits for others.
  double bubble = 0.0;

  // Returns the box that runs at a time; of a pair the second one.
  std::optional<std::size_t> at(double time) const;
};

// The time of a slot in seconds from the start of the step.
struct GanttSlotTime {
  double start = 0.0, finish = 0.0;
};
using StageSlotTimes = std::vector<std::vector<GanttSlotTime>>;

struct GanttStep {
  double length = 0.0;
  std::vector<double> bubbles;
  // The stage whose bubble is the step's.
  std::size_t busiest = 0;
};

class ScheduleGantt {
 public:
  ScheduleGantt() = default;
  // Shows the slots as they ran in a step. `times` and `step.bubbles` have an entry for each stage.
  ScheduleGantt(ScheduleKind kind, const ScheduleShape& shape, const StageSlotTimes& times,
                const GanttStep& step);
  // Shows slots of equal durations and messages that take no time: a forward takes a millisecond,
  // which the chunks of a stage share, and a backward twice as long, half of it for the weights.
  // All other time is bubble. Stays empty if no schedule of this kind has this shape.
  ScheduleGantt(ScheduleKind kind, const ScheduleShape& shape);

  bool empty() const { return stages_.empty(); }
  ScheduleKind kind() const { return kind_; }
  const ScheduleShape& shape() const { return shape_; }
  const std::vector<GanttStage>& stages() const { return stages_; }
  double makespan() const { return makespan_; }
  std::int64_t chunks() const { return chunks_; }
  // The share of the step in which its busiest stage waits for others; with equal durations the
  // mean of all stages.
  double bubble() const { return bubble_; }
  // The busiest stage of a step; none with equal durations.
  std::optional<std::size_t> busiest() const { return busiest_; }
  // The median length of the slots of a phase; 0 if there is none.
  double typical_length(SlotPhase phase) const { return typical_length_[phase]; }
  // The largest number of a microbatch.
  std::int32_t last_microbatch() const { return last_microbatch_; }
  // Return the nearest start or end of a slot after (before) a time, or the end (start) of all.
  double next_event(double time) const;
  double previous_event(double time) const;

 private:
  // `time_of` returns the time of a slot of the list.
  template <class TimeOf>
  void add_stage(const std::vector<Slot>& list, const TimeOf& time_of);
  // Fills in what follows from the boxes.
  void sum_up();

  ScheduleKind kind_ = ScheduleKind::OneFOneB;
  ScheduleShape shape_;
  std::vector<GanttStage> stages_;
  std::vector<double> events_;
  double makespan_ = 0.0;
  double bubble_ = 0.0;
  std::optional<std::size_t> busiest_;
  std::int64_t chunks_ = 1;
  EnumArray<SlotPhase, double> typical_length_{};
  std::int32_t last_microbatch_ = 0;
};

Role role_of(SlotPhase phase);
// "forward", "backward", "backward (input)", "backward (weight)".
const char* title_of(SlotPhase phase);

// Returns a row for each slot, in base units.
TextTable schedule_table(const ScheduleGantt& gantt);

// Returns the time of each slot of each stage, in the order of the schedule. A slot lasts from the
// start of its first op on the stage's compute stream to the end of its last one, which includes
// waits for tensor-parallel collectives. Recomputation belongs to the backward pass.
//
// Returns nothing if the timeline lacks a stage or a slot. If a stage has several ranks, the first
// one counts. `part`: whose stages they are, where the plan's replicas lie on several pools.
std::optional<StageSlotTimes> stage_slots(const Timeline& timeline, const ModelSpec& model,
                                          const Plan& plan, std::size_t part = 0);

}  // namespace shardwright::gui
