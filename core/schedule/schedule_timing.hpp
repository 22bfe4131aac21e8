// The ideal times of a schedule: what its order alone costs, with communication free.
//
// A slot starts when the slot before it on its stage has ended and its inputs are there: a forward
// needs the forward of the place before it on the microbatch's route; a backward (of the input)
// needs its own forward and the backward of the place after it; a backward of the weights needs its
// own backward of the input. A pair that overlaps (Slot::overlaps_next) runs as one: it starts when
// both have their inputs, both end together, and it takes as long as one after the other, so that a
// schedule gains from its order alone.
#pragma once

#include <optional>
#include <vector>

#include "core/base/units.hpp"
#include "core/schedule/pipeline_schedule.hpp"

namespace shardwright {

struct SlotTime {
  Seconds start, finish;

  bool operator==(const SlotTime&) const = default;
};

struct ScheduleTiming {
  // Slots as PipelineSchedule::stages has them.
  std::vector<std::vector<SlotTime>> slots;
  // The time from 0 to the end of the last slot.
  Seconds makespan;
  // The busy time of each stage.
  std::vector<Seconds> busy;
  // Per stage: time without a slot between the start of its first and the end of its last.
  std::vector<Seconds> idle;
};

// `times` is [stage][chunk]. Takes time linear in the number of slots. Nothing, if the schedule
// cannot finish because slots wait for each other or for slots that are missing.
std::optional<ScheduleTiming> time_schedule(const PipelineSchedule& schedule,
                                            const std::vector<std::vector<ChunkTimes>>& times);

// Times a schedule with the same times in all chunks.
std::optional<ScheduleTiming> time_schedule(const PipelineSchedule& schedule,
                                            const ChunkTimes& times);

}  // namespace shardwright
