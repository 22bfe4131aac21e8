#include "sim/step/schedule_path.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <string_view>
#include <type_traits>

namespace shardwright::sim {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

std::size_t index_of(const Slot& slot) {
  return static_cast<std::size_t>(cost_of(slot.phase));
}

bool gathers_parameters(const Slot& slot) {
  return slot.phase != SlotPhase::BackwardWeight;
}

struct TimedSlot {
  std::int64_t finish = 0;
  std::uint32_t input = kNone;  // the slot whose output it waited for, on the stage of that, if it
                                // did not wait for the slot before it on its own
};

// Times a list as time_schedule does, but for pairs, whose slots follow each other here.
class ListTiming {
 public:
  ListTiming(const PipelineSchedule& schedule, const NominalTimes& times)
      : schedule_(schedule), times_(times), timed_(schedule.stages.size()) {
    for (const Route& route : schedule.routes)
      microbatches_ = std::max(microbatches_,
                               index(route.microbatches.first) + index(route.microbatches.count));
    chunks_ = schedule.position.front().size();
    find_places();
    passed_.assign(2 * places_.size() * microbatches_, kNone);
    for (std::size_t stage = 0; stage < timed_.size(); ++stage)
      timed_[stage].reserve(schedule.stages[stage].size());
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t stage = 0; stage < timed_.size(); ++stage) {
        while (time_next(stage)) moved = true;
      }
    }
  }

  // Visits the slots of the way that decided the end of the list, the last one first.
  template <class Visit>
  void walk_back(Visit visit) const {
    std::size_t stage = last_stage(), at = timed_[stage].size() - 1;
    while (true) {
      const Slot& slot = schedule_.stages[stage][at];
      const std::uint32_t input = timed_[stage][at].input;
      const Slot* before = input == kNone && at > 0 ? &schedule_.stages[stage][at - 1] : nullptr;
      const std::size_t from = input == kNone ? stage : input_of(stage, slot) / chunks_;
      visit(stage, slot, before, input != kNone, from != stage);
      if (input == kNone && at == 0) return;
      at = input == kNone ? at - 1 : input;
      stage = from;
    }
  }

  // The chunk of the nominal times.
  std::size_t nominal(std::size_t stage, const Slot& slot) const {
    return places_[stage * chunks_ + index(slot.chunk)].nominal;
  }

 private:
  static constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

  // A chunk of a stage, and the places that it receives activations and gradients from.
  struct ListedPlace {
    std::size_t nominal = 0, before = kNowhere, after = kNowhere;
  };

  static std::size_t index(std::int32_t number) { return static_cast<std::size_t>(number); }

  void find_places() {
    places_.resize(timed_.size() * chunks_);
    for (const Route& route : schedule_.routes) {
      std::size_t nominal = 0, before = kNowhere;
      for (std::size_t position = 0; position < route.places.size(); ++position) {
        const Place& place = route.places[position];
        const std::size_t here = index(place.stage) * chunks_ + index(place.chunk);
        if (nominal + 1 < times_.chunks.size() &&
            index(times_.chunks[nominal + 1].first) == position)
          ++nominal;
        places_[here].nominal = nominal;
        places_[here].before = before;
        if (before != kNowhere) places_[before].after = here;
        before = here;
      }
    }
  }

  static bool hands_back(const Slot& slot) {
    return slot.phase == SlotPhase::Backward || slot.phase == SlotPhase::BackwardInput;
  }

  // The place whose output the slot works on, if it is not its own.
  std::size_t input_of(std::size_t stage, const Slot& slot) const {
    const ListedPlace& place = places_[stage * chunks_ + index(slot.chunk)];
    if (slot.phase == SlotPhase::Forward) return place.before;
    return hands_back(slot) ? place.after : kNowhere;
  }

  std::uint32_t& passed(std::size_t place, const Slot& slot) {
    return passed_[2 * (place * microbatches_ + index(slot.microbatch)) +
                   (hands_back(slot) ? 1 : 0)];
  }

  // When the slots of the stage so far are through, as far as the next one waits for them.
  std::int64_t ready_behind(std::size_t stage, const Slot& slot) const {
    const std::vector<TimedSlot>& timed = timed_[stage];
    if (timed.empty()) return 0;
    if (!gathers_parameters(slot)) return timed.back().finish;
    const Slot& before = schedule_.stages[stage][timed.size() - 1];
    return timed.back().finish + times_.chunks[nominal(stage, before)].reducing[index_of(before)];
  }

  // The next slot of a stage; false if there is none or its input is not there.
  bool time_next(std::size_t stage) {
    std::vector<TimedSlot>& timed = timed_[stage];
    if (timed.size() == schedule_.stages[stage].size()) return false;
    const Slot& slot = schedule_.stages[stage][timed.size()];
    const NominalChunk& chunk = times_.chunks[nominal(stage, slot)];
    TimedSlot next;
    next.finish = ready_behind(stage, slot) + chunk.behind_slot[index_of(slot)];
    if (const std::size_t from = input_of(stage, slot); from != kNowhere) {
      const std::uint32_t input = passed(from, slot);
      if (input == kNone) return false;
      const std::size_t source = from / chunks_;
      const std::int64_t finish = timed_[source][input].finish +
                                  (source == stage ? 0 : times_.message) +
                                  chunk.behind_input[index_of(slot)];
      if (finish > next.finish) next = {finish, input};
    }
    if (slot.phase != SlotPhase::BackwardWeight) {
      passed(stage * chunks_ + index(slot.chunk), slot) = static_cast<std::uint32_t>(timed.size());
    }
    timed.push_back(next);
    return true;
  }

  std::size_t last_stage() const {
    const auto ends_later = [](const std::vector<TimedSlot>& a, const std::vector<TimedSlot>& b) {
      return a.back().finish < b.back().finish;
    };
    return static_cast<std::size_t>(std::max_element(timed_.begin(), timed_.end(), ends_later) -
                                    timed_.begin());
  }

  const PipelineSchedule& schedule_;
  const NominalTimes& times_;
  std::vector<std::vector<TimedSlot>> timed_;  // by stage
  std::vector<ListedPlace> places_;            // by stage and chunk
  std::vector<std::uint32_t> passed_;  // by place, microbatch and direction: the slot's index
  std::size_t chunks_ = 0, microbatches_ = 0;
};

// The third of a list in its middle, in which it repeats its steady state.
bool is_steady(const PipelineSchedule& schedule, std::size_t stage, const Slot& slot) {
  const auto chunk = static_cast<std::size_t>(slot.chunk);
  const auto route = static_cast<std::size_t>(schedule.route[stage][chunk]);
  const MicrobatchRange& range = schedule.routes[route].microbatches;
  const std::int32_t third = range.count / 3, at = slot.microbatch - range.first;
  return at >= third && at < 2 * third;
}

}  // namespace

SlotCost cost_of(SlotPhase phase) {
  switch (phase) {
    case SlotPhase::Forward:
      return SlotCost::Forward;
    case SlotPhase::Backward:
      return SlotCost::Backward;
    case SlotPhase::BackwardInput:
      return SlotCost::BackwardInput;
    case SlotPhase::BackwardWeight:
      return SlotCost::BackwardWeight;
  }
  return SlotCost::Forward;
}

std::size_t NominalTimesHash::operator()(const NominalTimes& times) const {
  static_assert(std::has_unique_object_representations_v<NominalChunk>);
  const std::string_view bytes(reinterpret_cast<const char*>(times.chunks.data()),
                               times.chunks.size() * sizeof(NominalChunk));
  return std::hash<std::string_view>()(bytes) + static_cast<std::size_t>(times.message);
}

SchedulePath find_path(const PipelineSchedule& schedule, const NominalTimes& times) {
  const ListTiming timing(schedule, times);
  SchedulePath path;
  path.chunks.resize(times.chunks.size());
  path.steady_chunks.resize(times.chunks.size());
  timing.walk_back(
      [&](std::size_t stage, const Slot& slot, const Slot* before, bool waited, bool received) {
        const auto count = [&](std::vector<PassedSlots>& chunks, double& messages) {
          PassedSlots& passed = chunks[timing.nominal(stage, slot)];
          ++(waited ? passed.behind_input : passed.behind_slot)[index_of(slot)];
          if (received) ++messages;
          if (before && gathers_parameters(slot))
            ++chunks[timing.nominal(stage, *before)].reducing[index_of(*before)];
        };
        count(path.chunks, path.messages);
        if (is_steady(schedule, stage, slot)) count(path.steady_chunks, path.steady_messages);
      });
  return path;
}

}  // namespace shardwright::sim
