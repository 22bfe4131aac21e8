// Offload of activations in the costs of a stage: memory and launches of the copies that the
// lowering writes around the parts of a chunk (core/lowering/activation_offload.cpp).
#include <algorithm>

#include "sim/step/prices.hpp"
#include "sim/step/stage_costs.hpp"

namespace shardwright::sim {

// Bytes of activations that part `i` of the chunk at hand sends to the host: not the last layer.
double StageCoster::offloaded_bytes(std::size_t i) const {
  return i == last_layer_ ? 0.0 : parts_[i]->offloaded_bytes;
}

// Copies around the part at place `i` in the order of the slot: activations come back one part
// ahead of their use, and go once the next part has run.
BlockCost StageCoster::copies_before(SlotCost which, std::size_t i) const {
  BlockCost sum;
  if (which != SlotCost::Backward && which != SlotCost::BackwardInput) return sum;
  for (std::size_t at = i == 0 ? 0 : i + 1; at <= i + 1 && at < parts_.size(); ++at)
    sum = sum + copy_cost(offloaded_bytes(parts_.size() - 1 - at));
  return sum;
}

BlockCost StageCoster::copies_after(SlotCost which, std::size_t i) const {
  if (which != SlotCost::Forward || i == 0) return {};
  return copy_cost(-offloaded_bytes(i - 1));
}

BlockCost StageCoster::copy_cost(double bytes) const {
  BlockCost cost;
  cost.rise = std::max(bytes, 0.0);
  cost.net = bytes;
  if (bytes != 0.0) cost.launch = launch_time(stack_, cluster_).value();
  return cost;
}

}  // namespace shardwright::sim
