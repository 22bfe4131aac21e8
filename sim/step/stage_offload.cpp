// Offload of activations in the costs of a stage: memory, launches and times of the copies that the
// lowering writes around the parts of a chunk (core/lowering/activation_offload.cpp).
#include <algorithm>

#include "sim/step/prices.hpp"
#include "sim/step/stage_costs.hpp"

namespace shardwright::sim {

// Part `i` of the chunk at hand sends activations to the host: any layer but the last.
bool StageCoster::offloads(std::size_t i) const {
  return i != last_layer_ && parts_[i]->offloaded_bytes > 0.0;
}

double StageCoster::offloaded_bytes(std::size_t i) const {
  return offloads(i) ? parts_[i]->offloaded_bytes : 0.0;
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
  if (bytes != 0.0) cost.launch = host_launch(stack_, cluster_).kernel.value();
  return cost;
}

// Copies run one after the other, to the host beside the part after their own, which starts when
// `before` is computed, and the part after that waits for them.
void StageCoster::store_before(std::size_t i, double before, double& copied) {
  if (i == 0 || !offloads(i - 1)) return;
  copied = std::max(copied, before) + parts_[i - 1]->store_time;
  if (i + 1 < ready_.size()) ready_[i + 1] = std::max(ready_[i + 1], copied);
}

// From the host beside the part before their own, in the order of a backward slot.
void StageCoster::fetch_ahead(SlotCost which, std::size_t i, double computed, double& copied) {
  if (which == SlotCost::BackwardWeight) return;
  for (std::size_t at = i == 0 ? 0 : i + 1; at <= i + 1 && at < parts_.size(); ++at) {
    if (!offloads(parts_.size() - 1 - at)) continue;
    copied = std::max(copied, computed) + part_at(which, at).fetch_time;
    ready_[at] = std::max(ready_[at], copied);
  }
}

// How much longer a microbatch takes in the chunk at hand than each slot alone, because the copies
// of one slot are still on their way in the next: forward and backward passes in turn, or, with
// GPipe, all of one kind first.
double StageCoster::copy_wait(const Plan& plan) {
  if (plan.schedule == ScheduleKind::GPipe)
    return copy_wait(plan, {SlotCost::Forward}) + copy_wait(plan, {SlotCost::Backward});
  if (costs_.profile->splits_backward)
    return copy_wait(plan, {SlotCost::Forward, SlotCost::BackwardInput, SlotCost::BackwardWeight});
  return copy_wait(plan, {SlotCost::Forward, SlotCost::Backward});
}

double StageCoster::copy_wait(const Plan& plan, std::initializer_list<SlotCost> slots) {
  constexpr int kRounds = 4;  // until the copies have piled up as far as they do
  double wait = 0.0, copying = 0.0;
  for (int round = 0; round < kRounds; ++round) {
    wait = 0.0;
    for (const SlotCost which : slots) {
      const double alone = slot_time(which, plan, {.gathers = costs_.sharded});
      wait += slot_time(which, plan, {.gathers = costs_.sharded, .copied = copying}) - alone;
      copying = copying_;
    }
  }
  return wait;
}

}  // namespace shardwright::sim
