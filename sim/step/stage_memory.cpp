// What a stage holds: parameters, and the memory peak of StageCosts.
#include <algorithm>

#include "core/lowering/stage_states.hpp"
#include "core/program/groups.hpp"
#include "sim/memory/memory_replay.hpp"
#include "sim/step/stage_costs.hpp"

namespace shardwright::sim {

PartParameters StageCoster::chunk_parameters(std::size_t stage) const {
  PartParameters sum;
  for (const std::int32_t position : costs_.profile->stages[stage].position) {
    sum += costs_.chunk(static_cast<std::size_t>(position)).parameters;
  }
  return sum;
}

bool StageCoster::copies_embedding(const Plan& plan, std::size_t stage) const {
  bool embeds = false, heads = false;
  for (const std::int32_t position : costs_.profile->stages[stage].position) {
    embeds = embeds || position == 0;
    heads = heads || static_cast<std::size_t>(position) + 1 == ranges_.size();
  }
  return heads && !embeds && shares_embedding(model_, plan);
}

PartParameters StageCoster::stage_parameters(const LayerCosts& layers, const Plan& plan,
                                             std::size_t stage) const {
  PartParameters sum = chunk_parameters(stage);
  if (copies_embedding(plan, stage)) sum += layers.embedding.parameters;
  return sum;
}

// See gradient_placeholders (core/lowering/stage_states.hpp).
double StageCoster::placeholders(const LayerCosts& layers, const Plan& plan,
                                 std::size_t stage) const {
  double parameters = 0.0;
  for (const auto* kinds : {&layers.kept, &layers.recomputed}) {
    for (const PartCost& layer : *kinds) parameters = std::max(parameters, layer.parameters.dense);
  }
  const auto& positions = costs_.profile->stages[stage].position;
  const auto last = static_cast<std::int32_t>(ranges_.size()) - 1;
  if (std::find(positions.begin(), positions.end(), last) != positions.end()) {
    parameters += layers.embedding.parameters.dense;
  }
  return parameters * storage_bytes(plan.precision).value();
}

// The peak of memory_replay.hpp: what is held before a slot and the rise inside of it.
void StageCoster::find_peak(const LayerCosts& layers, const Plan& plan) {
  double most = -1.0, states = 0.0;
  for (std::size_t stage = 0; stage < costs_.profile->stages.size(); ++stage) {
    const StageProfile& profile = costs_.profile->stages[stage];
    const bool like_before = stage_like(stage) < stage;
    if (like_before && profile.holds_no_more_than_before) continue;
    if (!like_before) {
      states = 0.0;
      for (const PersistentMemory& state :
           persistent_memory(stage_parameters(layers, plan, stage), plan, stack_))
        states += state.bytes.value();
      if (stack_.gradient_placeholders && !shards_parameters(plan))
        states += placeholders(layers, plan, stage);
    }
    double highest = 0.0;
    for (const HeldActivations& held : profile.held) {
      double level = 0.0;
      for (std::size_t chunk = 0; chunk < profile.position.size(); ++chunk) {
        const ChunkCost& cost = costs_.chunk(static_cast<std::size_t>(profile.position[chunk]));
        const double forwarded = cost.of(SlotCost::Forward).net;
        level += held.forwarded[chunk] * forwarded;
        level += held.half_done[chunk] * (forwarded + cost.of(SlotCost::BackwardInput).net);
      }
      const auto position =
          static_cast<std::size_t>(profile.position[static_cast<std::size_t>(held.chunk)]);
      highest = std::max(highest, level + costs_.chunk(position).of(held.slot).rise);
    }
    if (states + highest <= most) continue;
    most = states + highest;
    costs_.fullest = static_cast<std::int32_t>(stage);
  }
  costs_.memory = Bytes(most * (1.0 + stack_.fragmentation)) + stack_.context_memory +
                  stack_.communicator_memory * communicators(plan);
}

}  // namespace shardwright::sim
