#include "gui/schedule/schedule_gantt.hpp"

#include <algorithm>

#include "core/schedule/schedule_timing.hpp"
#include "gui/painting/exact_text.hpp"

namespace shardwright::gui {

std::optional<std::size_t> GanttStage::at(double time) const {
  const auto after = std::upper_bound(boxes.begin(), boxes.end(), time,
                                      [](double t, const GanttBox& box) { return t < box.start; });
  if (after == boxes.begin() || std::prev(after)->finish <= time) return std::nullopt;
  return static_cast<std::size_t>(std::prev(after) - boxes.begin());
}

ScheduleGantt::ScheduleGantt(ScheduleKind kind, const ScheduleShape& shape,
                             const StageChunkTimes& times)
    : kind_(kind), shape_(shape) {
  if (why_not(kind, shape)) return;
  const PipelineSchedule schedule = make_schedule(kind, shape);
  const std::optional<ScheduleTiming> timing = time_schedule(schedule, times);
  if (!timing || timing->makespan.value() <= 0.0) return;
  makespan_ = timing->makespan.value();
  double busy = 0.0;
  for (std::size_t s = 0; s < schedule.stages.size(); ++s) {
    GanttStage& stage = stages_.emplace_back();
    for (std::size_t i = 0; i < schedule.stages[s].size(); ++i) {
      const Slot& slot = schedule.stages[s][i];
      const SlotTime& time = timing->slots[s][i];
      const bool lower = i > 0 && schedule.stages[s][i - 1].overlaps_next;
      stage.boxes.push_back({slot.phase, slot.chunk, slot.microbatch, time.start.value(),
                             time.finish.value(),
                             slot.overlaps_next ? GanttLane::Upper
                             : lower            ? GanttLane::Lower
                                                : GanttLane::Whole});
      events_.push_back(time.start.value());
      events_.push_back(time.finish.value());
      chunks_ = std::max<std::int64_t>(chunks_, slot.chunk + 1);
    }
    stage.busy = timing->busy[s].value();
    stage.bubble = 1.0 - stage.busy / makespan_;
    busy += stage.busy;
  }
  bubble_ = 1.0 - busy / (makespan_ * static_cast<double>(stages_.size()));
  std::sort(events_.begin(), events_.end());
  events_.erase(std::unique(events_.begin(), events_.end()), events_.end());
}

double ScheduleGantt::next_event(double time) const {
  const auto after = std::upper_bound(events_.begin(), events_.end(), time);
  return after == events_.end() ? makespan_ : *after;
}

double ScheduleGantt::previous_event(double time) const {
  const auto at = std::lower_bound(events_.begin(), events_.end(), time);
  return at == events_.begin() ? 0.0 : *std::prev(at);
}

StageChunkTimes even_times(ScheduleKind kind, const ScheduleShape& shape, Seconds forward) {
  const auto chunks = static_cast<std::size_t>(chunks_held(kind, shape));
  const Seconds part = forward / static_cast<double>(chunks);
  return StageChunkTimes(static_cast<std::size_t>(std::max<std::int64_t>(0, shape.stages)),
                         std::vector<ChunkTimes>(chunks, {part, part, part}));
}

Role role_of(SlotPhase phase) {
  switch (phase) {
    case SlotPhase::Forward:
      return Role::Forward;
    case SlotPhase::Backward:
    case SlotPhase::BackwardInput:
      return Role::BackwardInput;
    case SlotPhase::BackwardWeight:
      return Role::BackwardWeight;
  }
  return Role::Other;
}

const char* title_of(SlotPhase phase) {
  switch (phase) {
    case SlotPhase::Forward:
      return "forward";
    case SlotPhase::Backward:
      return "backward";
    case SlotPhase::BackwardInput:
      return "backward (input)";
    case SlotPhase::BackwardWeight:
      return "backward (weight)";
  }
  return "";
}

TextTable schedule_table(const ScheduleGantt& gantt) {
  TextTable table;
  table.header = {QStringLiteral("stage"),   QStringLiteral("phase"),
                  QStringLiteral("chunk"),   QStringLiteral("microbatch"),
                  QStringLiteral("start_s"), QStringLiteral("finish_s")};
  for (std::size_t s = 0; s < gantt.stages().size(); ++s) {
    for (const GanttBox& box : gantt.stages()[s].boxes)
      table.rows.push_back({QString::number(s), QString::fromUtf8(title_of(box.phase)),
                            QString::number(box.chunk), QString::number(box.microbatch),
                            exact_text(box.start), exact_text(box.finish)});
  }
  return table;
}

}  // namespace shardwright::gui
