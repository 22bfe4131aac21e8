// Pipeline schedules as data: for each stage the ordered list of what it runs.
//
// Lowering, simulation, execution and drawing read these lists and know no schedule by name. To add
// a schedule, see schedule_definition.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/enum_names.hpp"
#include "core/base/units.hpp"
#include "core/schedule/schedule_kind.hpp"

namespace shardwright {

enum class SlotPhase : std::uint8_t {
  Forward,
  // Gradients of input and weights in one go.
  Backward,
  BackwardInput,
  BackwardWeight,
};
inline constexpr std::size_t kSlotPhases = kEnumCount<SlotPhase>;

// True if a pass of this phase computes the gradient of its input, which the part before waits for.
inline bool hands_gradient_on(SlotPhase phase) {
  return phase == SlotPhase::Backward || phase == SlotPhase::BackwardInput;
}

// True if the weight gradients of a microbatch are complete after a pass of this phase.
inline bool completes_gradients(SlotPhase phase) {
  return phase == SlotPhase::Backward || phase == SlotPhase::BackwardWeight;
}

// One entry of a stage's list: one phase of one microbatch through one chunk that the stage holds.
struct Slot {
  SlotPhase phase = SlotPhase::Forward;
  // True if this slot and the next one of the stage run at the same time, each hiding the
  // communication of the other (DualPipe's forward-backward pairs).
  bool overlaps_next = false;
  // The chunk among those that the stage holds.
  std::int32_t chunk = 0;
  // The microbatch: 0 .. microbatches - 1.
  std::int32_t microbatch = 0;

  bool operator==(const Slot&) const = default;
};

// The most stages x chunks x microbatches that a schedule is made for. Larger lists would take
// gigabytes; they come from mistyped numbers.
inline constexpr double kMostMicrobatchChunks = 50e6;

struct MicrobatchRange {
  std::int32_t first = 0;
  std::int32_t count = 0;

  bool operator==(const MicrobatchRange&) const = default;
};

// A chunk of a stage.
struct Place {
  std::int32_t stage = 0;
  std::int32_t chunk = 0;

  bool operator==(const Place&) const = default;
};

// The way of some microbatches through the model: the places in forward order, each part of the
// model once.
struct Route {
  std::vector<Place> places;
  MicrobatchRange microbatches;

  bool operator==(const Route&) const = default;
};

struct PipelineSchedule {
  // Per stage, in execution order.
  std::vector<std::vector<Slot>> stages;
  // All microbatches take one route; with DualPipe the first half takes the route from the first
  // stage to the last, the second half the one back.
  std::vector<Route> routes;
  // [stage][chunk]: the route that leads through this place, and where on it the place lies: the
  // index of its part of the model, 0 .. stages x chunks - 1 of the shape.
  std::vector<std::vector<std::int32_t>> route;
  std::vector<std::vector<std::int32_t>> position;

  // The place that feeds this one with activations; null for the first part of the model.
  const Place* previous(Place place) const;
  // The place that feeds this one with gradients; null for the last part of the model.
  const Place* next(Place place) const;

  bool operator==(const PipelineSchedule&) const = default;
};

// The time of one microbatch in one chunk.
struct ChunkTimes {
  Seconds forward, backward_input, backward_weight;

  bool operator==(const ChunkTimes&) const = default;
};

// The reason why a schedule cannot run with this shape, as a sentence; nothing if it can.
std::optional<std::string> why_not(ScheduleKind kind, const ScheduleShape& shape);

// Time and memory are linear in the number of slots. The shape must be one that can run.
PipelineSchedule make_schedule(ScheduleKind kind, const ScheduleShape& shape);

// True if stages can wait for their messages to be sent before they go on. Where neighbours send to
// each other at the same time (chunks that feed each other in a circle, weight gradients between
// messages) that would lock, and every stack sends beside compute.
bool sends_may_block(ScheduleKind kind);

// Chunks whose parameters a stage holds.
std::int64_t chunks_held(ScheduleKind kind, const ScheduleShape& shape);

}  // namespace shardwright
