// A pipeline schedule as boxes in time: what each stage runs when, and when it waits. Holds no
// widget.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/schedule/pipeline_schedule.hpp"
#include "gui/models/table_text.hpp"
#include "gui/style/palette.hpp"

namespace shardwright::gui {

// Slots that run as a pair share the height of their row.
enum class GanttLane : std::uint8_t { Whole, Upper, Lower };

// One slot of a stage.
struct GanttBox {
  SlotPhase phase = SlotPhase::Forward;
  std::int32_t chunk = 0;
  std::int32_t microbatch = 0;
  double start = 0.0, finish = 0.0;  // in seconds
  GanttLane lane = GanttLane::Whole;

  bool operator==(const GanttBox&) const = default;
};

struct GanttStage {
  std::vector<GanttBox> boxes;  // in the order of the schedule, ascending in time
  double busy = 0.0;            // in seconds
  double bubble = 0.0;          // share of the whole time in which the stage waits for others

  // The box that runs at a time; of a pair the second one.
  std::optional<std::size_t> at(double time) const;
};

// By stage and chunk.
using StageChunkTimes = std::vector<std::vector<ChunkTimes>>;

// When a slot ran, in seconds of the step.
struct GanttSlotTime {
  double start = 0.0, finish = 0.0;
};
// By stage, in the order of the schedule.
using StageSlotTimes = std::vector<std::vector<GanttSlotTime>>;

// The step that slots belong to.
struct GanttStep {
  double length = 0.0;          // in seconds
  std::vector<double> bubbles;  // by stage, in seconds
  std::size_t busiest = 0;      // the stage whose bubble is the step's
};

class ScheduleGantt {
 public:
  ScheduleGantt() = default;
  // The slots as they ran in a step. `times` and `step.bubbles` have an entry for each stage.
  ScheduleGantt(ScheduleKind kind, const ScheduleShape& shape, const StageSlotTimes& times,
                const GanttStep& step);
  // With given durations, messages taking no time: the bubble is then all time without a slot.
  // Stays empty where no schedule of this kind has this shape (`why_not` says why). `times` has an
  // entry for each chunk of each stage.
  ScheduleGantt(ScheduleKind kind, const ScheduleShape& shape, const StageChunkTimes& times);

  bool empty() const { return stages_.empty(); }
  ScheduleKind kind() const { return kind_; }
  const ScheduleShape& shape() const { return shape_; }
  const std::vector<GanttStage>& stages() const { return stages_; }
  double makespan() const { return makespan_; }    // in seconds
  std::int64_t chunks() const { return chunks_; }  // that a stage runs
  // The share of the step that its busiest stage waits for others; with durations alone that of
  // all stages together.
  double bubble() const { return bubble_; }
  // Of a step; none with durations alone.
  std::optional<std::size_t> busiest() const { return busiest_; }
  // The mean length of a box, in seconds.
  double mean_length() const;
  // The nearest start or end of a slot after (before) a time; beyond them the ends of the whole.
  double next_event(double time) const;
  double previous_event(double time) const;

 private:
  // `time_of` tells when a slot of the list starts and finishes.
  template <class TimeOf>
  void add_stage(const std::vector<Slot>& list, const TimeOf& time_of);
  void sort_events();

  ScheduleKind kind_ = ScheduleKind::OneFOneB;
  ScheduleShape shape_;
  std::vector<GanttStage> stages_;
  std::vector<double> events_;  // ascending
  double makespan_ = 0.0;
  double bubble_ = 0.0;
  std::optional<std::size_t> busiest_;
  std::int64_t chunks_ = 1;
};

// The same for all chunks: a backward takes twice the time of a forward, half of it for the
// weights. Chunks of a stage share `forward` among them.
StageChunkTimes even_times(ScheduleKind kind, const ScheduleShape& shape,
                           Seconds forward = milliseconds(1.0));

Role role_of(SlotPhase phase);
// "forward", "backward", "backward (input)", "backward (weight)".
const char* title_of(SlotPhase phase);

// A row for each slot, in base units.
TextTable schedule_table(const ScheduleGantt& gantt);

}  // namespace shardwright::gui
