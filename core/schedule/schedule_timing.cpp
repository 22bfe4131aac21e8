#include "core/schedule/schedule_timing.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace shardwright {

namespace {

constexpr Seconds kNotYet = infinite<Seconds>();

// The times at which each microbatch has passed each place in one direction.
class PassTimes {
 public:
  PassTimes(const PipelineSchedule& schedule, std::int32_t microbatches)
      : microbatches_(microbatches), chunks_(schedule.position.front().size()) {
    finish_.assign(schedule.stages.size() * chunks_ * static_cast<std::size_t>(microbatches),
                   kNotYet);
  }

  Seconds& at(Place place, std::int32_t microbatch) {
    const std::size_t index =
        static_cast<std::size_t>(place.stage) * chunks_ + static_cast<std::size_t>(place.chunk);
    return finish_[index * static_cast<std::size_t>(microbatches_) +
                   static_cast<std::size_t>(microbatch)];
  }

 private:
  std::int32_t microbatches_;
  std::size_t chunks_;
  std::vector<Seconds> finish_;
};

std::int32_t microbatches_of(const PipelineSchedule& schedule) {
  std::int32_t end = 0;
  for (const Route& route : schedule.routes) {
    end = std::max(end, route.microbatches.first + route.microbatches.count);
  }
  return end;
}

Seconds duration_of(SlotPhase phase, const ChunkTimes& times) {
  switch (phase) {
    case SlotPhase::Forward:
      return times.forward;
    case SlotPhase::Backward:
      return times.backward_input + times.backward_weight;
    case SlotPhase::BackwardInput:
      return times.backward_input;
    case SlotPhase::BackwardWeight:
      return times.backward_weight;
  }
  return Seconds(0.0);
}

// Runs each stage as far as it gets, and goes back to a stage when the slot that it waits for has
// finished, so that each slot is looked at a constant number of times.
class Evaluation {
 public:
  Evaluation(const PipelineSchedule& schedule, const std::vector<std::vector<ChunkTimes>>& times)
      : schedule_(schedule),
        times_(times),
        forwards_(schedule, microbatches_of(schedule)),
        backwards_(schedule, microbatches_of(schedule)),
        clock_(schedule.stages.size()) {
    timing_.slots.resize(schedule.stages.size());
    timing_.busy.resize(schedule.stages.size());
    for (std::size_t stage = 0; stage < schedule.stages.size(); ++stage) {
      timing_.slots[stage].reserve(schedule.stages[stage].size());
      runnable_.push_back(static_cast<std::int32_t>(stage));
    }
  }

  std::optional<ScheduleTiming> run() {
    while (!runnable_.empty()) {
      const std::int32_t stage = runnable_.back();
      runnable_.pop_back();
      while (step(stage)) {
      }
    }
    for (std::size_t stage = 0; stage < schedule_.stages.size(); ++stage) {
      if (timing_.slots[stage].size() < schedule_.stages[stage].size()) return std::nullopt;
      summarise(stage);
    }
    return std::move(timing_);
  }

 private:
  // The slots that a stage runs next, together: one or a pair.
  std::span<const Slot> upcoming(std::int32_t stage) const {
    const std::span<const Slot> rest =
        std::span(schedule_.stages[stage]).subspan(timing_.slots[stage].size());
    const std::size_t together = !rest.empty() && rest.front().overlaps_next ? 2 : 1;
    return rest.first(std::min(together, rest.size()));
  }

  // Runs what comes next on a stage; false if there is nothing or it has to wait.
  bool step(std::int32_t stage) {
    const std::span<const Slot> slots = upcoming(stage);
    if (slots.empty()) return false;
    Seconds start = clock_[stage], duration;
    for (const Slot& slot : slots) {
      start = std::max(start, inputs_ready(slot, {stage, slot.chunk}));
      duration += duration_of(slot.phase, times_[stage][slot.chunk]);
    }
    if (start == kNotYet) return false;
    clock_[stage] = start + duration;
    timing_.busy[stage] += duration;
    timing_.slots[stage].insert(timing_.slots[stage].end(), slots.size(), {start, clock_[stage]});
    for (const Slot& slot : slots) pass_on(slot, {stage, slot.chunk}, clock_[stage]);
    return true;
  }

  Seconds inputs_ready(const Slot& slot, Place place) {
    if (slot.phase == SlotPhase::BackwardWeight) return backwards_.at(place, slot.microbatch);
    if (slot.phase == SlotPhase::Forward) {
      const Place* before = schedule_.previous(place);
      return before ? forwards_.at(*before, slot.microbatch) : Seconds(0.0);
    }
    const Place* after = schedule_.next(place);
    const Seconds own_forward = forwards_.at(place, slot.microbatch);
    return after ? std::max(own_forward, backwards_.at(*after, slot.microbatch)) : own_forward;
  }

  void pass_on(const Slot& slot, Place place, Seconds finish) {
    if (slot.phase == SlotPhase::BackwardWeight) return;
    const bool forward = slot.phase == SlotPhase::Forward;
    (forward ? forwards_ : backwards_).at(place, slot.microbatch) = finish;
    const Place* receiver = forward ? schedule_.next(place) : schedule_.previous(place);
    if (receiver && waits_for(*receiver, slot.microbatch)) runnable_.push_back(receiver->stage);
  }

  bool waits_for(Place receiver, std::int32_t microbatch) const {
    const std::span<const Slot> slots = upcoming(receiver.stage);
    return std::ranges::any_of(slots, [&](const Slot& slot) {
      return slot.chunk == receiver.chunk && slot.microbatch == microbatch;
    });
  }

  void summarise(std::size_t stage) {
    const std::vector<SlotTime>& slots = timing_.slots[stage];
    const Seconds span = slots.empty() ? Seconds() : slots.back().finish - slots.front().start;
    timing_.idle.push_back(span - timing_.busy[stage]);
    timing_.makespan = std::max(timing_.makespan, clock_[stage]);
  }

  const PipelineSchedule& schedule_;
  const std::vector<std::vector<ChunkTimes>>& times_;
  PassTimes forwards_, backwards_;
  // The time of each stage.
  std::vector<Seconds> clock_;
  std::vector<std::int32_t> runnable_;
  ScheduleTiming timing_;
};

}  // namespace

std::optional<ScheduleTiming> time_schedule(const PipelineSchedule& schedule,
                                            const std::vector<std::vector<ChunkTimes>>& times) {
  return Evaluation(schedule, times).run();
}

std::optional<ScheduleTiming> time_schedule(const PipelineSchedule& schedule,
                                            const ChunkTimes& times) {
  const std::vector<ChunkTimes> chunks(schedule.position.front().size(), times);
  return time_schedule(schedule,
                       std::vector<std::vector<ChunkTimes>>(schedule.stages.size(), chunks));
}

}  // namespace shardwright
