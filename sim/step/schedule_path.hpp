// The longest path through a schedule's list of slots, as counts of the slots and messages on it.
//
// A path leads from slot to slot of one stage, and from a stage to the one that waits for its
// message. It takes no longer than the schedule, however long the slots are. The longest path for
// slots of about the times of a plan is therefore near the schedule's length for that plan, and for
// all plans whose slots have about the same proportions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/schedule/pipeline_schedule.hpp"
#include "sim/step/layer_costs.hpp"

namespace shardwright::sim {

// The times of the slots of neighbouring chunks that are alike, in parts of any unit. Each array is
// by SlotPhase.
struct NominalChunk {
  using Times = std::array<std::int16_t, kSlotPhases>;

  // The position of the first of these chunks.
  std::int32_t first = 0;
  // The time of a slot that waits for the one before on its stage.
  Times behind_slot{};
  // The time of a slot from the arrival of its input.
  Times behind_input{};
  // The time for which the slot's reductions hold the gathers of the next slot up.
  Times reducing{};

  bool operator==(const NominalChunk&) const = default;
};

struct NominalTimes {
  // Chunks in forward order.
  std::vector<NominalChunk> chunks;
  std::int32_t message = 0;

  bool operator==(const NominalTimes&) const = default;
};

struct NominalTimesHash {
  std::size_t operator()(const NominalTimes& times) const;
};

// The numbers of slots on the path, of chunks that are alike, as NominalChunk has them.
struct PassedSlots {
  using Counts = std::array<double, kSlotPhases>;

  Counts behind_slot{}, behind_input{}, reducing{};
};

struct SchedulePath {
  // Slots of the chunks of the nominal times.
  std::vector<PassedSlots> chunks;
  double messages = 0.0;
  // The part of these in the middle third of the microbatches, where the list repeats its steady
  // state.
  std::vector<PassedSlots> steady_chunks;
  double steady_messages = 0.0;
};

// A slot of a schedule's list and what it waits for.
struct ListedSlot {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  // The slot before it on its stage.
  std::uint32_t before = kNone;
  // The slot of another chunk whose output it works on.
  std::uint32_t input = kNone;
  // The position of its chunk in forward order.
  std::uint32_t position = 0;
  SlotPhase phase = SlotPhase::Forward;
  // True if the input is on another stage.
  bool receives = false;
  // True in the middle third of the microbatches.
  bool steady = false;
};

// The slots of a schedule without deadlock, each behind those that it waits for.
struct ScheduleList {
  std::vector<ListedSlot> slots;
  // The last slot of each stage.
  std::vector<std::uint32_t> last;
  // The number of chunks in forward order.
  std::size_t positions = 0;
};

ScheduleList list_slots(const PipelineSchedule& schedule);

// The longest path through the list. `times` are those of the chunks of the list's schedule.
SchedulePath find_path(const ScheduleList& list, const NominalTimes& times);

}  // namespace shardwright::sim
