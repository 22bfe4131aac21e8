// The figures of a pipeline schedule that the estimates need, without its lists of slots.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/schedule/pipeline_schedule.hpp"
#include "sim/step/layer_costs.hpp"
#include "sim/step/schedule_path.hpp"

namespace shardwright::sim {

// A moment at which a stage may hold the most: before a slot, with so many microbatches in flight.
struct HeldActivations {
  SlotPhase slot = SlotPhase::Forward;
  // The chunk of the slot.
  std::int32_t chunk = 0;
  // Microbatches by chunk: those after their forward, and those after their input gradient but
  // before their weight gradient.
  std::vector<std::int32_t> forwarded, half_done;
  // The sums over all chunks.
  std::int32_t all_forwarded = 0, all_half_done = 0;
};

// Slots of a stage over all of its chunks.
struct SlotCounts {
  std::array<std::int32_t, kSlotPhases> of{};

  bool operator==(const SlotCounts&) const = default;
};

struct StageProfile {
  // The place of each chunk's part of the model in forward order.
  std::vector<std::int32_t> position;
  // The chunk of the last slot that hands a gradient on.
  std::int32_t last_gradient_chunk = 0;
  // Weight gradients of each chunk after that slot.
  std::vector<std::int32_t> trailing_weights;
  // The chunk of the first slot that hands a gradient on.
  std::int32_t first_gradient_chunk = 0;
  // Forward slots of each chunk before it.
  std::vector<std::int32_t> warmup;
  // The most microbatches between their forward and their gradient, if the stage has one chunk;
  // else 0.
  std::int32_t window = 0;
  // The slots from the one on that completes a chunk's gradients, by chunk. The chunks are in the
  // order in which that happens.
  std::vector<SlotCounts> from_completion;
  // Slots before the first one that completes a gradient.
  SlotCounts before_completion;
  std::vector<std::int32_t> completion_order;
  // Held activations of which none has less than another in all chunks.
  std::vector<HeldActivations> held;
  // True if all of `held` is covered by the stage before.
  bool holds_no_more_than_before = false;
};

struct ScheduleProfile {
  ScheduleKind kind = ScheduleKind::OneFOneB;
  // The shape with the microbatches of the list that it was read off.
  ScheduleShape shape;
  std::vector<StageProfile> stages;
  // True, by position in forward order, if the part and the one before it are on one stage (the
  // turn of a V).
  std::vector<bool> joined;
  // The share of the microbatches that pass each chunk (DualPipe: a half).
  double microbatch_share = 1.0;
  // True if input and weight gradients are slots of their own.
  bool splits_backward = false;
  // True if some backward slots are whole and some are split.
  bool mixes_backward = false;
};

ScheduleProfile profile_schedule(const PipelineSchedule& schedule);

// Profiles by shape. They do not change any more from some number of microbatches on, so few
// schedules are ever written.
class ScheduleProfileStore {
 public:
  // May be called by several threads at once.
  const ScheduleProfile& of(ScheduleKind kind, const ScheduleShape& shape);

 private:
  using Key = std::tuple<ScheduleKind, std::int64_t, std::int64_t, std::int64_t>;
  struct Entry {
    std::once_flag written;
    ScheduleProfile profile;
  };

  std::mutex mutex_;
  // Entries stay where they are.
  std::map<Key, Entry> entries_;
};

// Profiles and paths for one thread; threads may share a store.
class ScheduleProfiles {
 public:
  explicit ScheduleProfiles(
      std::shared_ptr<ScheduleProfileStore> store = std::make_shared<ScheduleProfileStore>())
      : store_(std::move(store)) {}

  const ScheduleProfile& of(ScheduleKind kind, const ScheduleShape& shape) {
    return store_->of(kind, shape);
  }

  // The longest path through the list of one of these profiles.
  const SchedulePath& path(const ScheduleProfile& profile, const NominalTimes& times);

 private:
  std::shared_ptr<ScheduleProfileStore> store_;
  using Paths = std::unordered_map<NominalTimes, SchedulePath, NominalTimesHash>;
  std::unordered_map<const ScheduleProfile*, Paths> paths_;
  // The profile whose path was asked for last.
  const ScheduleProfile* asked_ = nullptr;
  // The paths of that profile.
  Paths* paths_of_asked_ = nullptr;
  // The profile whose list was written last.
  const ScheduleProfile* listed_ = nullptr;
  // The list of that profile.
  ScheduleList list_;
};

}  // namespace shardwright::sim
