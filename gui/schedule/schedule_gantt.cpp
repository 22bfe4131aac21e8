#include "gui/schedule/schedule_gantt.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "core/program/rank_grid.hpp"
#include "core/program/shard_shape.hpp"
#include "core/schedule/schedule_timing.hpp"
#include "core/spec/pools.hpp"
#include "gui/models/shown_ranks.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

struct Extent {
  double start = std::numeric_limits<double>::infinity();
  double end = 0.0;

  bool empty() const { return start > end; }
  void add(double from, double to) {
    start = std::min(start, from);
    end = std::max(end, to);
  }
};

struct Passes {
  Extent forward, input, weight;
};

class SlotFinder {
 public:
  SlotFinder(const ModelSpec& model, const Plan& plan, std::size_t part)
      : schedule_(make_schedule(plan.schedule, shape_of(plan_of_part(plan, part)))),
        layers_(split_layers(model, plan)),
        grid_(plan),
        first_stage_(static_cast<std::int64_t>(part * schedule_.stages.size())) {}

  std::optional<StageSlotTimes> find(const Timeline& timeline) const {
    const auto ranks = first_ranks(timeline, grid_);
    StageSlotTimes times;
    for (std::size_t number = 0; number < schedule_.stages.size(); ++number) {
      const auto found = ranks.find(first_stage_ + static_cast<std::int64_t>(number));
      if (found == ranks.end()) return std::nullopt;
      const std::int32_t rank = found->second;
      auto of_stage = slots_of(number, passes_of(timeline, number, rank));
      if (!of_stage) return std::nullopt;
      times.push_back(std::move(*of_stage));
    }
    return times;
  }

 private:
  using PassKey = std::pair<std::int32_t, std::int32_t>;
  using PassMap = std::map<PassKey, Passes>;

  // The head, behind the last layer, lies in the last chunk.
  std::int32_t position_of(const Span& span) const {
    const std::int32_t layer = span.layer;
    const auto end = std::find_if(layers_.begin(), layers_.end(), [&](const LayerRange& range) {
      return layer < range.first + range.count;
    });
    return static_cast<std::int32_t>(std::min(end, layers_.end() - 1) - layers_.begin());
  }

  std::optional<std::int32_t> chunk_of(std::size_t stage, const Span& span) const {
    const std::int32_t position = position_of(span);
    for (std::size_t c = 0; c < schedule_.position[stage].size(); ++c) {
      // Timelines count the embedding to the first layer. It lies in the first chunk, which may
      // have no layer.
      const bool holds = schedule_.position[stage][c] == position ||
                         (schedule_.position[stage][c] == 0 && span.layer == 0);
      const auto route = static_cast<std::size_t>(schedule_.route[stage][c]);
      const MicrobatchRange& range = schedule_.routes[route].microbatches;
      if (holds && span.microbatch >= range.first && span.microbatch < range.first + range.count)
        return static_cast<std::int32_t>(c);
    }
    return std::nullopt;
  }

  PassMap passes_of(const Timeline& timeline, std::size_t stage, std::int32_t rank) const {
    PassMap passes;
    for (const Span& span : timeline.spans) {
      if (span.rank != rank || span.stream != Stream::Compute || span.microbatch < 0) continue;
      const auto chunk = chunk_of(stage, span);
      if (!chunk) continue;
      Passes& pass = passes[{*chunk, span.microbatch}];
      Extent& extent = span.phase == Phase::Forward          ? pass.forward
                       : span.phase == Phase::BackwardWeight ? pass.weight
                                                             : pass.input;
      extent.add(span.start.value(), span.end().value());
    }
    return passes;
  }

  std::optional<std::vector<GanttSlotTime>> slots_of(std::size_t stage,
                                                     const PassMap& passes) const {
    std::vector<GanttSlotTime> times;
    double reached = 0.0;
    for (const Slot& slot : schedule_.stages[stage]) {
      const auto pass = passes.find({slot.chunk, slot.microbatch});
      if (pass == passes.end()) return std::nullopt;
      const Extent extent = extent_of(slot.phase, pass->second);
      // A chunk without weights has a slot for their gradients all the same.
      const bool missing = extent.empty() && slot.phase != SlotPhase::BackwardWeight;
      if (missing) return std::nullopt;
      const double start = extent.empty() ? reached : std::max(extent.start, reached);
      times.push_back({start, std::max(start, extent.end)});
      // Both slots of a pair run at the same time.
      reached = slot.overlaps_next ? start : times.back().finish;
    }
    return times;
  }

  static Extent extent_of(SlotPhase phase, const Passes& pass) {
    if (phase == SlotPhase::Forward) return pass.forward;
    if (phase == SlotPhase::BackwardWeight) return pass.weight;
    Extent extent = pass.input;
    if (phase == SlotPhase::Backward && !pass.weight.empty())
      extent.add(pass.weight.start, pass.weight.end);
    return extent;
  }

  PipelineSchedule schedule_;
  std::vector<LayerRange> layers_;
  RankGrid grid_;
  // The number of the first stage of the part of the replicas.
  std::int64_t first_stage_;
};

}  // namespace

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

void ScheduleGantt::sum_up() {
  std::sort(events_.begin(), events_.end());
  events_.erase(std::unique(events_.begin(), events_.end()), events_.end());
  EnumArray<SlotPhase, std::vector<double>> lengths;
  for (const GanttStage& stage : stages_) {
    for (const GanttBox& box : stage.boxes) {
      lengths[box.phase].push_back(box.finish - box.start);
      last_microbatch_ = std::max(last_microbatch_, box.microbatch);
    }
  }
  for (const SlotPhase phase : enumerators<SlotPhase>()) {
    std::vector<double>& of_phase = lengths[phase];
    if (of_phase.empty()) continue;
    const auto middle = of_phase.begin() + std::ssize(of_phase) / 2;
    std::nth_element(of_phase.begin(), middle, of_phase.end());
    typical_length_[phase] = *middle;
  }
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
  sum_up();
}

ScheduleGantt::ScheduleGantt(ScheduleKind kind, const ScheduleShape& shape)
    : kind_(kind), shape_(shape) {
  if (why_not(kind, shape)) return;
  const auto chunks = static_cast<std::size_t>(chunks_held(kind, shape));
  const Seconds part = milliseconds(1.0) / static_cast<double>(chunks);
  const std::vector<std::vector<ChunkTimes>> times(
      static_cast<std::size_t>(shape.stages), std::vector<ChunkTimes>(chunks, {part, part, part}));
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
  sum_up();
}

double ScheduleGantt::next_event(double time) const {
  const auto after = std::upper_bound(events_.begin(), events_.end(), time);
  return after == events_.end() ? makespan_ : *after;
}

double ScheduleGantt::previous_event(double time) const {
  const auto at = std::lower_bound(events_.begin(), events_.end(), time);
  return at == events_.begin() ? 0.0 : *std::prev(at);
}

Role role_of(SlotPhase phase) {
  constexpr EnumArray<SlotPhase, Role> kRoleOf = {
      {Role::Forward, Role::BackwardInput, Role::BackwardInput, Role::BackwardWeight}};
  return kRoleOf[phase];
}

const char* title_of(SlotPhase phase) {
  constexpr EnumArray<SlotPhase, const char*> kTitles = {
      {"forward", "backward", "backward (input)", "backward (weight)"}};
  return kTitles[phase];
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

std::optional<StageSlotTimes> stage_slots(const Timeline& timeline, const ModelSpec& model,
                                          const Plan& plan, std::size_t part) {
  if (why_not(plan.schedule, shape_of(plan_of_part(plan, part)))) return std::nullopt;
  return SlotFinder(model, plan, part).find(timeline);
}

}  // namespace shardwright::gui
