// The longest way through a schedule's list of slots, as counts of what it passes.
//
// A way that leads from slot to slot of one stage, and from a stage to that which waits for its
// message, takes no longer than the schedule, whatever its slots take. The longest one for slots of
// about the times of a plan is therefore near the schedule's length for that plan, and for all
// plans whose slots have about the same proportions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/schedule/pipeline_schedule.hpp"
#include "sim/step/layer_costs.hpp"

namespace shardwright::sim {

// What the slots of neighbouring chunks that are alike take, in parts of any unit. Each array is by
// SlotPhase.
struct NominalChunk {
  using Times = std::array<std::int16_t, kSlotPhases>;

  std::int32_t first = 0;  // position of the first of these chunks
  Times behind_slot{};     // of a slot that waits for the one before on its stage …
  Times behind_input{};    // … and from the arrival of what the slot works on
  Times reducing{};        // the slot's reductions hold the gathers of the next slot up

  bool operator==(const NominalChunk&) const = default;
};

struct NominalTimes {
  std::vector<NominalChunk> chunks;  // in forward order
  std::int32_t message = 0;

  bool operator==(const NominalTimes&) const = default;
};

struct NominalTimesHash {
  std::size_t operator()(const NominalTimes& times) const;
};

// How many slots of chunks that are alike the way passes, as NominalChunk has them.
struct PassedSlots {
  using Counts = std::array<double, kSlotPhases>;

  Counts behind_slot{}, behind_input{}, reducing{};
};

struct SchedulePath {
  std::vector<PassedSlots> chunks;  // as those of the nominal times
  double messages = 0.0;
  // Of these, in the middle third of the microbatches, where the list repeats its steady state.
  std::vector<PassedSlots> steady_chunks;
  double steady_messages = 0.0;
};

// A slot of a schedule's list and what it waits for.
struct ListedSlot {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t before = kNone;  // the slot before it on its stage …
  std::uint32_t input = kNone;   // … and the one whose output it works on, if another chunk's
  std::uint32_t position = 0;    // of its chunk, in forward order
  SlotPhase phase = SlotPhase::Forward;
  bool receives = false;  // the input is on another stage
  bool steady = false;    // in the middle third of the microbatches
};

// The slots of a schedule that finishes, each behind those that it waits for.
struct ScheduleList {
  std::vector<ListedSlot> slots;
  std::vector<std::uint32_t> last;  // by stage
  std::size_t positions = 0;        // chunks in forward order
};

ScheduleList list_slots(const PipelineSchedule& schedule);

// The longest way through the list. `times` are those of the chunks of the list's schedule.
SchedulePath find_path(const ScheduleList& list, const NominalTimes& times);

}  // namespace shardwright::sim
