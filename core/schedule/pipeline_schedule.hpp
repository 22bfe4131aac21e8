// Pipeline schedules as data: for each stage the ordered list of what it runs.
//
// Lowering, simulation, execution and drawing read these lists and know no schedule by name. To add
// a schedule, see schedule_definition.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/spec/plan.hpp"

namespace shardwright {

enum class SlotPhase : std::uint8_t {
  Forward,
  Backward,  // gradients of input and weights in one go
  BackwardInput,
  BackwardWeight,
};

// One entry of a stage's list: one phase of one microbatch through one chunk that the stage holds.
struct Slot {
  SlotPhase phase = SlotPhase::Forward;
  // This slot and the next one of the stage are meant to run at the same time, each hiding the
  // communication of the other (DualPipe's forward-backward pairs).
  bool overlaps_next = false;
  std::int32_t chunk = 0;       // of those that the stage holds
  std::int32_t microbatch = 0;  // 0 .. microbatches - 1

  bool operator==(const Slot&) const = default;
};

// The size of a schedule.
struct ScheduleShape {
  std::int64_t stages = 1;
  // Parts of the model per stage (Plan::vpp). DualPipe has 1: the two chunks that its stages hold
  // are copies of two different parts.
  std::int64_t chunks = 1;
  std::int64_t microbatches = 1;

  bool operator==(const ScheduleShape&) const = default;
};

ScheduleShape shape_of(const Plan& plan);

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

  // The place that feeds this one with activations; none for the first part of the model.
  std::optional<Place> previous(Place place) const;
  // The place that feeds this one with gradients; none for the last part of the model.
  std::optional<Place> next(Place place) const;

  bool operator==(const PipelineSchedule&) const = default;
};

// The time of one microbatch in one chunk.
struct ChunkTimes {
  Seconds forward, backward_input, backward_weight;

  bool operator==(const ChunkTimes&) const = default;
};

// Why a schedule cannot run with this shape, as a sentence for people; nothing if it can.
std::optional<std::string> why_not(ScheduleKind kind, const ScheduleShape& shape);

// Time and memory are linear in the number of slots. The shape must be one that can run.
PipelineSchedule make_schedule(ScheduleKind kind, const ScheduleShape& shape);

// Chunks whose parameters a stage holds.
std::int64_t chunks_held(ScheduleKind kind, const ScheduleShape& shape);

// The most activations in flight on the worst stage as published, in activations of one microbatch
// in one chunk. An activation is held from its forward until its weight gradient is done, since
// both backward halves read it.
std::int64_t activation_bound(ScheduleKind kind, const ScheduleShape& shape);

// The same, counted in the lists of a schedule: one number per stage.
std::vector<std::int64_t> peak_activations(const PipelineSchedule& schedule);

// The published bubble: idle time of the worst stage between the start of its first slot and the
// end of its last, where all chunks take the same time and communication is free. Stages of ZB-H2
// and ZB-V start and end at different times, which only pays off if the optimizer steps without
// waiting for all stages (post-validation, arXiv 2401.10241 section 4).
//
// Formulas: GPipe, 1F1B and interleaved (p-1)(F+B+W), arXiv 2104.04473 section 2.2, with the times
// of one chunk; ZB-H1 (p-1)(F+B-W), ZB-H2 (p-1)(F+B-2W), ZB-V 0, arXiv 2401.10241 sections 2 and
// 6; DualPipe (p/2-1)(F+2B-W), github.com/deepseek-ai/DualPipe with F&B = F+B+W, that is,
// where pairs gain nothing. Never below 0.
//
// Exact where microbatches suffice to fill the pipeline (p for ZB-H1, 2p-1 for ZB-H2 and ZB-V) and
// the weight gradient takes no longer than the forward and the input gradient (ZB-H1, ZB-H2), as
// long as both (ZB-V), or the forward no longer than the input gradient (DualPipe); elsewhere a
// lower bound. For DualPipe both hold where pairs run as one (schedule_timing.hpp); whoever passes
// on the result of a pair's forward before its backward has ended stays below.
Seconds published_bubble(ScheduleKind kind, const ScheduleShape& shape, const ChunkTimes& times);

}  // namespace shardwright
