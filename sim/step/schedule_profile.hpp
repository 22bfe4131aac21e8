// What the estimates need to know of a pipeline schedule, without its lists of slots.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/schedule/pipeline_schedule.hpp"
#include "sim/step/layer_costs.hpp"
#include "sim/step/schedule_path.hpp"

namespace shardwright::sim {

// A moment at which a stage may hold the most: before a slot, with so many microbatches in flight.
struct HeldActivations {
  SlotPhase slot = SlotPhase::Forward;
  std::int32_t chunk = 0;  // of the slot
  // By chunk: microbatches after their forward, and after their input gradient but before their
  // weight gradient.
  std::vector<std::int32_t> forwarded, half_done;
  std::int32_t all_forwarded = 0, all_half_done = 0;  // of all chunks together
};

// Slots of a stage over all of its chunks.
struct SlotCounts {
  std::array<std::int32_t, kSlotPhases> of{};

  bool operator==(const SlotCounts&) const = default;
};

struct StageProfile {
  std::vector<std::int32_t> position;    // by chunk: of its part of the model in forward order
  std::int32_t last_gradient_chunk = 0;  // of the last slot that hands a gradient on
  std::vector<std::int32_t> trailing_weights;  // by chunk: weight gradients after that slot
  std::int32_t first_gradient_chunk = 0;       // of the first slot that hands a gradient on …
  std::vector<std::int32_t> warmup;            // … and by chunk: forward slots before it
  std::int32_t window = 0;  // most microbatches between their forward and their gradient, if the
                            // stage has one chunk; else 0
  // By chunk: the slots from the one on that completes its gradients. The chunks in the order in
  // which that happens.
  std::vector<SlotCounts> from_completion;
  SlotCounts before_completion;  // slots before the first one that completes a gradient
  std::vector<std::int32_t> completion_order;
  std::vector<HeldActivations> held;       // of which none holds less than another in all chunks
  bool holds_no_more_than_before = false;  // all of `held` is covered by the stage before
};

struct ScheduleProfile {
  ScheduleKind kind = ScheduleKind::OneFOneB;
  ScheduleShape shape;  // with the microbatches of the list that it was read off
  std::vector<StageProfile> stages;
  // By position in forward order: the part and the one before it are on one stage (the turn of a
  // V).
  std::vector<bool> joined;
  double microbatch_share = 1.0;  // of the microbatches that pass each chunk (DualPipe: a half)
  bool splits_backward = false;   // input and weight gradients are slots of their own
  bool mixes_backward = false;    // some backward slots are whole, some are split
};

ScheduleProfile profile_schedule(const PipelineSchedule& schedule);

// Profiles by shape. They do not change any more from some number of microbatches on, so few
// schedules are ever written. Not for use by several threads at once.
class ScheduleProfiles {
 public:
  const ScheduleProfile& of(ScheduleKind kind, const ScheduleShape& shape);

  // The longest way through the list of one of these profiles.
  const SchedulePath& path(const ScheduleProfile& profile, const NominalTimes& times);

 private:
  using Key = std::tuple<ScheduleKind, std::int64_t, std::int64_t, std::int64_t>;
  std::map<Key, std::unique_ptr<ScheduleProfile>> profiles_;
  using Paths = std::unordered_map<NominalTimes, SchedulePath, NominalTimesHash>;
  std::unordered_map<const ScheduleProfile*, Paths> paths_;
  const ScheduleProfile* asked_ = nullptr;   // the one whose path was asked for last …
  Paths* paths_of_asked_ = nullptr;          // … and its paths
  const ScheduleProfile* listed_ = nullptr;  // the one whose list was written last …
  ScheduleList list_;                        // … and that list
};

}  // namespace shardwright::sim
