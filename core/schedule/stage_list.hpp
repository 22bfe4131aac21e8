// Writes the list of one stage.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/schedule/pipeline_schedule.hpp"

namespace shardwright {

// Each phase of a chunk takes the chunk's microbatches in order, so that a schedule only says which
// chunk and phase comes next. This also keeps the order of sends and receives equal between
// neighbours.
//
// Slots after the last microbatch are left out: schedules are written for as many
// microbatches as fill the pipeline, and remain right with fewer, as dependencies only tie slots of
// the same microbatch.
class StageList {
 public:
  // The microbatches of each chunk.
  explicit StageList(const std::vector<MicrobatchRange>& microbatches);
  StageList(std::int64_t chunks, std::int64_t microbatches);

  void forward(std::int64_t chunk = 0);
  // Needs that no weight gradient of the chunk is pending.
  void backward(std::int64_t chunk = 0);
  void backward_input(std::int64_t chunk = 0);
  void backward_weight(std::int64_t chunk = 0);
  // The forward of one chunk beside the backward of another.
  void forward_beside_backward(std::int64_t forward_chunk, std::int64_t backward_chunk);

  std::vector<Slot> take() && { return std::move(slots_); }

 private:
  struct Progress {
    MicrobatchRange microbatches;
    std::int32_t forwards = 0, backwards = 0, weights = 0;
  };

  bool add(SlotPhase phase, std::int64_t chunk, std::int32_t index);

  std::vector<Progress> chunks_;
  std::vector<Slot> slots_;
};

}  // namespace shardwright
