// Activations that wait on the host between the forward and the backward pass of their layer, as
// Transformer Engine offloads them (transformer_engine/pytorch/cpu_offload.py): a layer's copy runs
// beside the next layer's kernels, on a stream of its own. The last layer of a chunk keeps its own,
// since its backward pass may come next.
#include <algorithm>

#include "core/lowering/stage_writer.hpp"

namespace shardwright {

// The copy is issued, and the memory given back, after the part that it runs beside: until then
// both parts hold theirs. A part waits for the copy of the part two before, so that two hold theirs
// at most.
void StageWriter::store_before(const std::vector<Part>& parts, std::size_t index,
                               const std::vector<std::uint32_t>& on, const Slot& slot) {
  if (index == 0 || !parts[index - 1].offloaded) return;
  const Part& part = parts[index - 1];
  slot_copy_[index - 1] = call_around(part.blocks->store, part.layer, slot, on) + 1;
}

void StageWriter::fetch_ahead(const std::vector<Part>& parts, std::size_t index, const Slot& slot) {
  for (std::size_t i = index; i <= std::min(index + 1, parts.size() - 1); ++i) {
    if (!parts[i].offloaded || slot_copy_[i] > 0) continue;
    slot_copy_[i] = call_around(parts[i].blocks->fetch, parts[i].layer, slot, ends()) + 1;
  }
  if (slot_copy_[index] > 0) wait_for(slot_copy_[index] - 1);
}

}  // namespace shardwright
