#include "sim/step/schedule_path.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <string_view>

namespace shardwright::sim {
namespace {

constexpr std::uint32_t kNoPlace = ListedSlot::kNone;

std::size_t index(std::int32_t number) {
  return static_cast<std::size_t>(number);
}

std::size_t phase_index(const ListedSlot& slot) {
  return static_cast<std::size_t>(slot.phase);
}

bool gathers_parameters(const ListedSlot& slot) {
  return slot.phase != SlotPhase::BackwardWeight;
}

// Puts the slots of a schedule in an order in which they can run. Those of pairs follow each other.
class SlotLister {
 public:
  explicit SlotLister(const PipelineSchedule& schedule)
      : schedule_(schedule), listed_(schedule.stages.size(), 0) {
    list_.last.assign(schedule.stages.size(), kNoPlace);
    list_.positions = schedule.routes.front().places.size();
    chunks_ = schedule.position.front().size();
    for (const Route& route : schedule.routes)
      microbatches_ = std::max(microbatches_,
                               index(route.microbatches.first) + index(route.microbatches.count));
    find_neighbours();
    passed_.assign(2 * neighbours_.size() * microbatches_, kNoPlace);
    std::size_t slots = 0;
    for (const std::vector<Slot>& stage : schedule.stages) slots += stage.size();
    list_.slots.reserve(slots);
  }

  ScheduleList list() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t stage = 0; stage < listed_.size(); ++stage) {
        while (list_next(stage)) moved = true;
      }
    }
    return std::move(list_);
  }

 private:
  static constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

  // The places that a chunk of a stage receives activations and gradients from.
  struct Neighbours {
    std::size_t before = kNowhere, after = kNowhere;
  };

  void find_neighbours() {
    neighbours_.resize(listed_.size() * chunks_);
    for (const Route& route : schedule_.routes) {
      std::size_t before = kNowhere;
      for (const Place& place : route.places) {
        const std::size_t here = index(place.stage) * chunks_ + index(place.chunk);
        neighbours_[here].before = before;
        if (before != kNowhere) neighbours_[before].after = here;
        before = here;
      }
    }
  }

  // The place whose output the slot works on, if it is not its own.
  std::size_t input_of(std::size_t place, const Slot& slot) const {
    if (slot.phase == SlotPhase::Forward) return neighbours_[place].before;
    return hands_gradient_on(slot.phase) ? neighbours_[place].after : kNowhere;
  }

  std::uint32_t& passed(std::size_t place, const Slot& slot) {
    return passed_[2 * (place * microbatches_ + index(slot.microbatch)) +
                   (hands_gradient_on(slot.phase) ? 1 : 0)];
  }

  bool is_steady(std::size_t stage, const Slot& slot) const {
    const std::int32_t route = schedule_.route[stage][index(slot.chunk)];
    const MicrobatchRange& range = schedule_.routes[index(route)].microbatches;
    const std::int32_t third = range.count / 3, at = slot.microbatch - range.first;
    return at >= third && at < 2 * third;
  }

  // The next slot of a stage; false if there is none or its input is not there.
  bool list_next(std::size_t stage) {
    if (listed_[stage] == schedule_.stages[stage].size()) return false;
    const Slot& slot = schedule_.stages[stage][listed_[stage]];
    const std::size_t place = stage * chunks_ + index(slot.chunk);
    ListedSlot next;
    if (const std::size_t from = input_of(place, slot); from != kNowhere) {
      next.input = passed(from, slot);
      if (next.input == kNoPlace) return false;
      next.receives = from / chunks_ != stage;
    }
    next.before = list_.last[stage];
    next.position = static_cast<std::uint32_t>(schedule_.position[stage][index(slot.chunk)]);
    next.phase = slot.phase;
    next.steady = is_steady(stage, slot);
    list_.last[stage] = static_cast<std::uint32_t>(list_.slots.size());
    if (slot.phase != SlotPhase::BackwardWeight) passed(place, slot) = list_.last[stage];
    list_.slots.push_back(next);
    ++listed_[stage];
    return true;
  }

  const PipelineSchedule& schedule_;
  ScheduleList list_;
  // Slots in the list, by stage.
  std::vector<std::size_t> listed_;
  // Neighbours by place: stage and chunk.
  std::vector<Neighbours> neighbours_;
  // The slot of each place, microbatch and direction.
  std::vector<std::uint32_t> passed_;
  std::size_t chunks_ = 0, microbatches_ = 0;
};

// The ends of the slots of a list, in parts as its nominal times have them.
class ListTiming {
 public:
  ListTiming(const ScheduleList& list, const NominalTimes& times)
      : list_(list),
        message_(times.message),
        finish_(std::make_unique_for_overwrite<std::int64_t[]>(list.slots.size())) {
    std::size_t nominal = 0;
    for (std::size_t position = 0; position < list.positions; ++position) {
      if (nominal + 1 < times.chunks.size() && index(times.chunks[nominal + 1].first) == position)
        ++nominal;
      nominal_.push_back(nominal);
      const NominalChunk& chunk = times.chunks[nominal];
      for (std::size_t cost = 0; cost < kSlotPhases; ++cost)
        times_.push_back({chunk.behind_slot[cost], chunk.behind_input[cost], chunk.reducing[cost]});
    }
    for (std::size_t i = 0; i < list.slots.size(); ++i)
      finish_[i] = std::max(behind_slot(list.slots[i]), behind_input(list.slots[i]));
  }

  // Visits the slots on the path that decided the end of the list, the last one first, and whether
  // the path reaches each through its input.
  template <class Visit>
  void walk_back(Visit visit) const {
    for (std::uint32_t at = last_slot(); at != kNoPlace;) {
      const ListedSlot& slot = list_.slots[at];
      const bool waited = behind_input(slot) > behind_slot(slot);
      visit(slot, waited);
      at = waited ? slot.input : slot.before;
    }
  }

  // The chunk of the nominal times.
  std::size_t nominal(const ListedSlot& slot) const { return nominal_[slot.position]; }

 private:
  // The times of a slot, as NominalChunk has them.
  struct SlotTimes {
    std::int16_t behind_slot, behind_input, reducing;
  };

  const SlotTimes& times_of(const ListedSlot& slot) const {
    return times_[slot.position * kSlotPhases + phase_index(slot)];
  }

  // The end of the slot if it waits for those before it on its stage alone.
  std::int64_t behind_slot(const ListedSlot& slot) const {
    const std::int64_t time = times_of(slot).behind_slot;
    if (slot.before == ListedSlot::kNone) return time;
    const std::int64_t reducing =
        gathers_parameters(slot) ? times_of(list_.slots[slot.before]).reducing : 0;
    return finish_[slot.before] + reducing + time;
  }

  // The end of the slot if it waits for its input alone; never, if it has none.
  std::int64_t behind_input(const ListedSlot& slot) const {
    if (slot.input == kNoPlace) return std::numeric_limits<std::int64_t>::min();
    return finish_[slot.input] + (slot.receives ? message_ : 0) + times_of(slot).behind_input;
  }

  std::uint32_t last_slot() const {
    return *std::max_element(
        list_.last.begin(), list_.last.end(),
        [this](std::uint32_t a, std::uint32_t b) { return finish_[a] < finish_[b]; });
  }

  const ScheduleList& list_;
  std::int64_t message_;
  // The nominal chunk of each position.
  std::vector<std::size_t> nominal_;
  // Times by position and slot cost.
  std::vector<SlotTimes> times_;
  // The end of each slot.
  std::unique_ptr<std::int64_t[]> finish_;
};

}  // namespace

std::size_t NominalTimesHash::operator()(const NominalTimes& times) const {
  static_assert(std::has_unique_object_representations_v<NominalChunk>);
  const std::string_view bytes(reinterpret_cast<const char*>(times.chunks.data()),
                               times.chunks.size() * sizeof(NominalChunk));
  return std::hash<std::string_view>()(bytes) + static_cast<std::size_t>(times.message);
}

ScheduleList list_slots(const PipelineSchedule& schedule) {
  return SlotLister(schedule).list();
}

SchedulePath find_path(const ScheduleList& list, const NominalTimes& times) {
  const ListTiming timing(list, times);
  SchedulePath path;
  path.chunks.resize(times.chunks.size());
  path.steady_chunks.resize(times.chunks.size());
  timing.walk_back([&](const ListedSlot& slot, bool waited) {
    const auto count = [&](std::vector<PassedSlots>& chunks, double& messages) {
      PassedSlots& passed = chunks[timing.nominal(slot)];
      ++(waited ? passed.behind_input : passed.behind_slot)[phase_index(slot)];
      if (waited && slot.receives) ++messages;
      if (waited || slot.before == ListedSlot::kNone || !gathers_parameters(slot)) return;
      const ListedSlot& before = list.slots[slot.before];
      ++chunks[timing.nominal(before)].reducing[phase_index(before)];
    };
    count(path.chunks, path.messages);
    if (slot.steady) count(path.steady_chunks, path.steady_messages);
  });
  return path;
}

}  // namespace shardwright::sim
