// The discrete-event queue: a priority queue of small typed events and the clock that it drives.
//
// Events leave in the total order (time, priority, sequence): the earliest first, among events of
// one time the more urgent priority first, among those the one that was scheduled first. The order
// depends on nothing else, so a simulation is deterministic. A queue has no global state; any
// number of simulations run side by side in threads, each with a queue of its own.
//
// Events carry a small trivially copyable payload (a kind and a target) that the simulation
// switches on; there are no callbacks in the hot path. The keys lie in an implicit 4-ary heap, the
// payloads in a slab beside it; an EventId is a slot of that slab and its generation. The heap
// knows where each slot stands, so cancelling and rescheduling leave no dead entries behind.
// schedule, pop, cancel: O(log pending). No allocation once the queue has reached its size.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/units.hpp"

namespace shardwright::sim {

// The order of events of one time.
enum class EventPriority : std::uint8_t {
  // Frees resources: events that start at the same time must see them free.
  Completion,
  // Begins work on resources that are free by now.
  Start,
  // Observes a time after all that happened in it.
  Sample,
  // Ends the run: last, so that nothing of its time is lost.
  Stop,
};

// Names one scheduled event. Stays valid as a name for ever: once the event has left the queue, no
// later event answers to it. A default-constructed id names nothing.
struct EventId {
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;

  bool operator==(const EventId&) const = default;
};

template <class Payload>
class EventQueue {
  static_assert(std::is_trivially_copyable_v<Payload> && sizeof(Payload) <= 32,
                "a payload is a kind and a target, not an object");

 public:
  struct Event {
    Seconds time;
    EventPriority priority;
    Payload payload;
  };

  // The time of the event that left last; zero at first.
  Seconds now() const { return now_; }
  std::size_t pending() const { return heap_.size(); }
  bool empty() const { return heap_.empty(); }
  // The number of events that have left the queue by pop or run.
  std::uint64_t executed() const { return executed_; }

  void reserve(std::size_t events) {
    heap_.reserve(events);
    slots_.reserve(events);
    free_slots_.reserve(events);
  }

  // `time` is finite and not before now().
  EventId schedule_at(Seconds time, EventPriority priority, Payload payload) {
    const std::uint32_t slot = take_slot();
    slots_[slot].payload = payload;
    heap_.push_back({});
    sift_up(heap_.size() - 1, {checked(time), order_of(priority), slot});
    return {slot, slots_[slot].generation};
  }

  // Takes an event out. False if it has left the queue already, which is harmless.
  bool cancel(EventId id) {
    if (!is_pending(id)) return false;
    remove_at(slots_[id.slot].position);
    return true;
  }

  // Moves a pending event to another time, as if it were cancelled and scheduled now: it comes
  // after the events of that time and priority that are already there. The id stays valid. False if
  // the event has left the queue.
  bool reschedule(EventId id, Seconds time) {
    if (!is_pending(id)) return false;
    const std::size_t position = slots_[id.slot].position;
    const auto priority = priority_of(heap_[position]);
    place(position, {checked(time), order_of(priority), id.slot});
    return true;
  }

  bool is_pending(EventId id) const {
    return id.slot < slots_.size() && id.generation == slots_[id.slot].generation &&
           slots_[id.slot].position != kNowhere;
  }

  // The time of the next event; nothing if the queue is empty.
  std::optional<Seconds> next_time() const {
    if (heap_.empty()) return std::nullopt;
    return Seconds(heap_.front().time);
  }

  // Takes the next event out and moves the clock to its time. The queue is not empty.
  Event pop() {
    SHARDWRIGHT_CHECK(!heap_.empty(), "pop from an empty event queue");
    const Entry first = heap_.front();
    const Event event{Seconds(first.time), priority_of(first), slots_[first.slot].payload};
    remove_first();
    now_ = event.time;
    ++executed_;
    return event;
  }

  // Hands events to `handler(const Event&)`, which may schedule and cancel, until none is left.
  template <class Handler>
  void run(Handler&& handler) {
    while (!heap_.empty()) handler(pop());
  }

 private:
  static constexpr std::size_t kArity = 4;
  static constexpr int kSequenceBits = 56;
  static constexpr std::uint32_t kNowhere = UINT32_MAX;

  struct Entry {
    double time;
    // The priority in the top byte, the sequence number below.
    std::uint64_t order;
    std::uint32_t slot;
  };
  struct Slot {
    Payload payload;
    std::uint32_t generation = 0;
    // The position in the heap.
    std::uint32_t position = kNowhere;
  };

  // This has no short-circuits, so that it compiles to no unpredictable branch.
  static bool before(const Entry& a, const Entry& b) {
    return static_cast<bool>(
        static_cast<unsigned>(a.time < b.time) |
        (static_cast<unsigned>(a.time == b.time) & static_cast<unsigned>(a.order < b.order)));
  }
  static EventPriority priority_of(const Entry& entry) {
    return static_cast<EventPriority>(entry.order >> kSequenceBits);
  }
  std::uint64_t order_of(EventPriority priority) {
    return (static_cast<std::uint64_t>(priority) << kSequenceBits) | sequence_++;
  }
  double checked(Seconds time) const {
    SHARDWRIGHT_CHECK(time >= now_ && std::isfinite(time.value()),
                      "an event is scheduled in the past or at no finite time");
    return time.value();
  }

  std::uint32_t take_slot() {
    if (free_slots_.empty()) {
      slots_.push_back({{}, 1, kNowhere});
      return static_cast<std::uint32_t>(slots_.size() - 1);
    }
    const std::uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
  }
  void free_slot(std::uint32_t slot) {
    slots_[slot].position = kNowhere;
    ++slots_[slot].generation;
    free_slots_.push_back(slot);
  }

  void put(std::size_t position, const Entry& entry) {
    heap_[position] = entry;
    slots_[entry.slot].position = static_cast<std::uint32_t>(position);
  }
  void place(std::size_t position, const Entry& entry) {
    if (position > 0 && before(entry, heap_[(position - 1) / kArity])) {
      sift_up(position, entry);
    } else {
      sift_down(position, entry);
    }
  }
  void sift_up(std::size_t position, const Entry& entry) {
    while (position > 0) {
      const std::size_t parent = (position - 1) / kArity;
      if (!before(entry, heap_[parent])) break;
      put(position, heap_[parent]);
      position = parent;
    }
    put(position, entry);
  }
  void sift_down(std::size_t position, const Entry& entry) {
    while (position * kArity + 1 < heap_.size()) {
      const std::size_t child = least_child(position);
      if (!before(heap_[child], entry)) break;
      put(position, heap_[child]);
      position = child;
    }
    put(position, entry);
  }
  std::size_t least_child(std::size_t position) const {
    const std::size_t first = position * kArity + 1;
    // All four are there: a tournament without branches.
    if (first + kArity <= heap_.size()) {
      const std::size_t left = first + before(heap_[first + 1], heap_[first]);
      const std::size_t right = first + 2 + before(heap_[first + 3], heap_[first + 2]);
      return before(heap_[right], heap_[left]) ? right : left;
    }
    std::size_t least = first;
    for (std::size_t child = first + 1; child < heap_.size(); ++child) {
      if (before(heap_[child], heap_[least])) least = child;
    }
    return least;
  }

  // The last entry belongs near the bottom, so the hole sinks all the way without comparing with
  // it.
  void remove_first() {
    free_slot(heap_.front().slot);
    const Entry last = heap_.back();
    heap_.pop_back();
    if (heap_.empty()) return;
    std::size_t hole = 0;
    while (hole * kArity + 1 < heap_.size()) {
      const std::size_t child = least_child(hole);
      put(hole, heap_[child]);
      hole = child;
    }
    sift_up(hole, last);
  }
  void remove_at(std::size_t position) {
    free_slot(heap_[position].slot);
    const Entry last = heap_.back();
    heap_.pop_back();
    if (position < heap_.size()) place(position, last);
  }

  std::vector<Entry> heap_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::uint64_t sequence_ = 0;
  std::uint64_t executed_ = 0;
  Seconds now_;
};

}  // namespace shardwright::sim
