#include "core/schedule/stage_list.hpp"

namespace shardwright {

namespace {

// Forward, backward of the input, backward of the weights.
constexpr std::size_t kMostSlotsPerMicrobatch = 3;

}  // namespace

StageList::StageList(const std::vector<MicrobatchRange>& microbatches) {
  std::size_t total = 0;
  for (const MicrobatchRange& range : microbatches) {
    chunks_.push_back({range});
    total += static_cast<std::size_t>(range.count);
  }
  slots_.reserve(kMostSlotsPerMicrobatch * total);
}

StageList::StageList(std::int64_t chunks, std::int64_t microbatches)
    : StageList(std::vector<MicrobatchRange>(static_cast<std::size_t>(chunks),
                                             {0, static_cast<std::int32_t>(microbatches)})) {}

void StageList::forward(std::int64_t chunk) {
  add(SlotPhase::Forward, chunk, chunks_[chunk].forwards++);
}

void StageList::backward(std::int64_t chunk) {
  ++chunks_[chunk].weights;
  add(SlotPhase::Backward, chunk, chunks_[chunk].backwards++);
}

void StageList::backward_input(std::int64_t chunk) {
  add(SlotPhase::BackwardInput, chunk, chunks_[chunk].backwards++);
}

void StageList::backward_weight(std::int64_t chunk) {
  add(SlotPhase::BackwardWeight, chunk, chunks_[chunk].weights++);
}

void StageList::forward_beside_backward(std::int64_t forward_chunk, std::int64_t backward_chunk) {
  const bool has_forward =
      add(SlotPhase::Forward, forward_chunk, chunks_[forward_chunk].forwards++);
  const std::size_t forward_slot = slots_.size() - 1;
  ++chunks_[backward_chunk].weights;
  const bool has_backward =
      add(SlotPhase::Backward, backward_chunk, chunks_[backward_chunk].backwards++);
  if (has_forward && has_backward) slots_[forward_slot].overlaps_next = true;
}

bool StageList::add(SlotPhase phase, std::int64_t chunk, std::int32_t index) {
  const MicrobatchRange& range = chunks_[chunk].microbatches;
  if (index >= range.count) return false;
  slots_.push_back({phase, false, static_cast<std::int32_t>(chunk), range.first + index});
  return true;
}

}  // namespace shardwright
