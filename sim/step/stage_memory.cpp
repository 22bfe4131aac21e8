#include "sim/step/stage_memory.hpp"

#include <algorithm>

#include "core/lowering/stage_states.hpp"
#include "sim/memory/memory_replay.hpp"

namespace shardwright::sim {
namespace {

// The peak of a stage whose chunks are alike: it does not matter which chunk a microbatch is held
// of.
double peak_of_like_chunks(const StageProfile& profile, const ChunkCost& chunk) {
  const double forwarded = chunk.slot[SlotPhase::Forward].net;
  const double half_done = forwarded + chunk.slot[SlotPhase::BackwardInput].net;
  double highest = 0.0;
  for (const HeldActivations& held : profile.held) {
    const double level = held.all_forwarded * forwarded + held.all_half_done * half_done;
    highest = std::max(highest, level + chunk.slot[held.slot].rise);
  }
  return highest;
}

// The sum of the bytes held before a slot and of the rise inside of it, at its highest.
double activation_peak(const PipelineLayout& layout, const ChunkCosts& chunks, std::size_t stage) {
  const StageProfile& profile = layout.stage(stage);
  const auto chunk = [&](std::size_t i) {
    return chunks[static_cast<std::size_t>(profile.position[i])];
  };
  const std::size_t count = profile.position.size();
  const auto is_like_first = [&](std::int32_t position) {
    return chunks[static_cast<std::size_t>(position)] == chunk(0);
  };
  if (std::all_of(profile.position.begin(), profile.position.end(), is_like_first))
    return peak_of_like_chunks(profile, *chunk(0));
  double highest = 0.0;
  for (const HeldActivations& held : profile.held) {
    double level = 0.0;
    for (std::size_t i = 0; i < count; ++i)
      level += held.forwarded[i] * chunk(i)->slot[SlotPhase::Forward].net;
    for (std::size_t i = 0; layout.profile->splits_backward && i < count; ++i) {
      level += held.half_done[i] * (chunk(i)->slot[SlotPhase::Forward].net +
                                    chunk(i)->slot[SlotPhase::BackwardInput].net);
    }
    const ChunkCost& at_hand = *chunk(static_cast<std::size_t>(held.chunk));
    highest = std::max(highest, level + at_hand.slot[held.slot].rise);
  }
  return highest;
}

}  // namespace

std::vector<ActivationPeak> activation_peaks(const PipelineLayout& layout,
                                             const ChunkCosts& chunks) {
  std::vector<ActivationPeak> peaks;
  for (std::size_t stage = 0; stage < layout.stage_kind.size(); ++stage) {
    const bool like_before = stage > 0 && layout.stage_kind[stage] == layout.stage_kind[stage - 1];
    if (like_before && layout.stage(stage).holds_no_more_than_before) continue;
    const ActivationPeak peak{stage, activation_peak(layout, chunks, stage)};
    if (!like_before) {
      peaks.push_back(peak);
    } else if (peak.bytes > peaks.back().bytes) {
      peaks.back() = peak;
    }
  }
  return peaks;
}

double state_bytes(const PlanContext& in, const ChunkCosts& chunks, std::size_t stage) {
  double sum = 0.0;
  std::vector<PartParameters> fragments;
  if (in.plan.replicas.fragments > 1) fragments = fragment_parameters(in, chunks, stage);
  for (const PersistentMemory& state :
       persistent_memory(stage_parameters(in, chunks, stage), in.plan, in.stack, fragments))
    sum += state.bytes.value();
  if (!in.stack.memory.gradient_placeholders || in.sharded) return sum;
  double largest_layer = 0.0;
  for (const auto* kinds : {&in.layers.kept, &in.layers.recomputed}) {
    for (const PartCost& layer : *kinds)
      largest_layer = std::max(largest_layer, layer.parameters.dense);
  }
  const ModelEnds ends = ends_of_model(in.layout.stage(stage).position, in.layout.ranges.size());
  return sum + gradient_placeholders(largest_layer, in.layers.embedding.parameters.dense, ends.head,
                                     in.plan)
                   .value();
}

Bytes held_by_device(const PlanContext& in, double tensor_bytes) {
  return Bytes(tensor_bytes * (1.0 + in.stack.memory.fragmentation)) + in.stack.memory.context +
         in.stack.memory.communicator * communicators(in.plan, in.model);
}

void add_to_pool(const PlanContext& in, std::size_t stage, double tensor_bytes,
                 StageMemory& memory) {
  memory.pools.resize(in.pools.size());
  PeakStage& pool = memory.pools[in.layout.pool_of(stage)];
  const Bytes held = held_by_device(in, tensor_bytes);
  if (held <= pool.peak) return;
  pool = {held, static_cast<std::int32_t>(stage)};
}

}  // namespace shardwright::sim
