#include "gui/schedule/schedule_gantt.hpp"

#include <algorithm>

#include "core/schedule/schedule_timing.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {

std::optional<std::size_t> GanttStage::at(double time) const {
  const auto after = std::upper_bound(boxes.begin(), boxes.end(), time,
                                      [](double t, const GanttBox& box) { return t < box.start; });
  if (after == boxes.begin() || std::prev(after)->finish <= time) return std::nullopt;
  return static_cast<std::size_t>(std::prev(after) - boxes.begin());
}

template <class TimeOf>
void ScheduleGantt::add_stage(const std::vector<Slot>& list, const TimeOf& time_of) {
  GanttStage& stage = stages_.emplace_back();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Slot& slot = list[i];
    const bool lower = i > 0 && list[i - 1].overlaps_next;
    const GanttLane lane = slot.overlaps_next ? GanttLane::Upper
                           : lower            ? GanttLane::Lower
                                              : GanttLane::Whole;
    const auto [start, finish] = time_of(i);
    stage.boxes.push_back({slot.phase, slot.chunk, slot.microbatch, start, finish, lane});
    events_.push_back(start);
    events_.push_back(finish);
    chunks_ = std::max<std::int64_t>(chunks_, slot.chunk + 1);
  }
}

void ScheduleGantt::sort_events() {
  std::sort(events_.begin(), events_.end());
  events_.erase(std::unique(events_.begin(), events_.end()), events_.end());
}

ScheduleGantt::ScheduleGantt(ScheduleKind kind, const ScheduleShape& shape,
                             const StageSlotTimes& times, const GanttStep& step)
    : kind_(kind), shape_(shape), makespan_(step.length), busiest_(step.busiest) {
  const PipelineSchedule schedule = make_schedule(kind, shape);
  for (std::size_t s = 0; s < schedule.stages.size(); ++s) {
    add_stage(schedule.stages[s], [&](std::size_t i) { return times[s][i]; });
    GanttStage& stage = stages_.back();
    double reached = 0.0;
    for (const GanttBox& box : stage.boxes) {
      stage.busy += std::max(0.0, box.finish - std::max(reached, box.start));
      reached = std::max(reached, box.finish);
      makespan_ = std::max(makespan_, reached);
    }
    stage.bubble = step.bubbles[s] / step.length;
  }
  bubble_ = stages_[step.busiest].bubble;
  sort_events();
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
    add_stage(schedule.stages[s], [&](std::size_t i) {
      const SlotTime& time = timing->slots[s][i];
      return GanttSlotTime{time.start.value(), time.finish.value()};
    });
    GanttStage& stage = stages_.back();
    stage.busy = timing->busy[s].value();
    stage.bubble = 1.0 - stage.busy / makespan_;
    busy += stage.busy;
  }
  bubble_ = 1.0 - busy / (makespan_ * static_cast<double>(stages_.size()));
  sort_events();
}

double ScheduleGantt::mean_length() const {
  double length = 0.0;
  std::size_t boxes = 0;
  for (const GanttStage& stage : stages_) {
    for (const GanttBox& box : stage.boxes) length += box.finish - box.start;
    boxes += stage.boxes.size();
  }
  return boxes > 0 ? length / static_cast<double>(boxes) : 0.0;
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
  table.header = {u"stage"_s, u"phase"_s, u"chunk"_s, u"microbatch"_s, u"start_s"_s, u"finish_s"_s};
  for (std::size_t s = 0; s < gantt.stages().size(); ++s) {
    for (const GanttBox& box : gantt.stages()[s].boxes)
      table.rows.push_back({QString::number(s), to_qstring(title_of(box.phase)),
                            QString::number(box.chunk), QString::number(box.microbatch),
                            exact_text(box.start), exact_text(box.finish)});
  }
  return table;
}

}  // namespace shardwright::gui
