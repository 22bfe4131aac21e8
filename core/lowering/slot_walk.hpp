// The calls of one slot of a schedule for each part of its chunk, in issue order.
//
// The lowering walks a slot to write calls, and the closed forms (sim/step/chunk_costs.hpp) walk it
// to add up the times of the same calls, so that the order of gathers, copies, kernels and
// reductions is stated once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/program/shard_shape.hpp"
#include "core/schedule/pipeline_schedule.hpp"

namespace shardwright {

// One part of the model (the embedding, a layer or the head) in a chunk. `Part` is what the caller
// knows of it: its blocks, or its costs.
template <class Part>
struct ChunkPart {
  const Part* part = nullptr;
  // The index of the layer; the number of layers for the head, 0 for the embedding.
  std::int32_t layer = 0;
  // True if the activations of the part wait on the host between its passes.
  bool offloaded = false;
  // The size of the group of layers that are recomputed together, and the layer's number in it. The
  // group runs again before the backward pass of its last layer.
  std::size_t group = 1, in_group = 0;

  bool ends_group() const { return in_group + 1 == group; }
};

// The parts of the chunk at `position`, which lies on `stage`, in forward order. `Parts` is
// BlockSet or has its members.
template <class Parts, class Part = decltype(Parts::embedding)>
std::vector<ChunkPart<Part>> parts_of_chunk(const Parts& parts, const Plan& plan,
                                            const std::vector<LayerRange>& ranges,
                                            std::size_t position, std::int64_t stage) {
  const LayerRange& range = ranges[position];
  const bool recomputes = plan.reruns_layers();
  std::vector<ChunkPart<Part>> chunk;
  chunk.reserve(static_cast<std::size_t>(range.count) + 2);
  if (position == 0) chunk.push_back({&parts.embedding});
  for (std::int64_t i = 0; i < range.count; ++i) {
    const auto layer = static_cast<std::int32_t>(range.first + i);
    const auto kind =
        static_cast<std::size_t>(parts.kind_of_layer[static_cast<std::size_t>(layer)]);
    const bool recomputed = plan.recomputes_layer_of_chunk(i, stage);
    const std::int64_t in_group = i % plan.recompute_group;
    const std::int64_t group = std::min(plan.recompute_group, range.count - (i - in_group));
    const Part& part = group > 1    ? parts.grouped.at(in_group, group)[kind]
                       : recomputed ? parts.recomputed[kind]
                                    : parts.kept[kind];
    // The last layer of a chunk keeps its activations, since its backward pass may come next.
    const bool waits_there = plan.offload_layers == 0 || i < plan.offload_layers;
    chunk.push_back({&part, layer, part.offloads && waits_there && i + 1 < range.count,
                     static_cast<std::size_t>(group), static_cast<std::size_t>(in_group)});
  }
  if (position + 1 == ranges.size()) {
    const bool recomputed = recomputes && parts.recomputed_head;
    chunk.push_back({recomputed ? &*parts.recomputed_head : &parts.head,
                     static_cast<std::int32_t>(parts.kind_of_layer.size())});
  }
  return chunk;
}

// Activations are offloaded as Transformer Engine does it
// (transformer_engine/pytorch/cpu_offload.py): a part's copy to the host runs beside the next
// part's kernels, on a stream of its own. A part waits for the copy of the part so many places
// before it, so that as many parts hold their activations at most.
inline constexpr std::size_t kPartsBeforeStore = 2;

// FSDP, as a slot issues it.
struct ShardedSlots {
  // True if parameters are gathered before use.
  bool gathers = false;
  // The number of parts whose gathers are issued ahead of the one that is computed.
  std::size_t ahead = 0;
};

// Walks the steps of a slot without the messages at its ends. `parts` is in forward order.
// `visitor` has a function for each kind of step. The function takes the part and its index in the
// slot's execution order:
//   gather   FSDP: gathers the parameters of the part, if its pass reads them
//   fetch    copies the offloaded activations of the part back
//   rerun    the forward pass of a part whose group runs again as a whole
//   run      the kernels of the part
//   store    copies the activations of the part to the host, beside the next part's kernels
//   reduce   the weight gradients of the part are complete for this microbatch
template <class Part, class Visitor>
void walk_slot(SlotPhase phase, const std::vector<ChunkPart<Part>>& parts, ShardedSlots sharded,
               Visitor&& visitor) {
  const std::size_t count = parts.size();
  const auto part_at = [&](std::size_t place) -> const ChunkPart<Part>& {
    return parts[phase == SlotPhase::Forward ? place : count - 1 - place];
  };
  const bool backward = hands_gradient_on(phase);
  // Parameters are gathered in the order of their first use: a group runs again from its first
  // layer on, which is at the last of its places.
  const auto gathered_place = [&](std::size_t i) {
    const ChunkPart<Part>& part = part_at(i);
    const std::size_t from_last = part.group - 1 - part.in_group;
    return backward ? i - from_last + part.in_group : i;
  };
  std::size_t gathered = 0, fetched = 0;
  const auto gather_for = [&](std::size_t use) {
    if (!sharded.gathers || phase == SlotPhase::BackwardWeight) return;
    for (; gathered < std::min(use + sharded.ahead + 1, count); ++gathered) {
      const std::size_t place = gathered_place(gathered);
      visitor.gather(part_at(place), place);
    }
  };
  for (std::size_t place = 0; place < count; ++place) {
    gather_for(place);
    if (backward) {
      for (; fetched < std::min(place + 2, count); ++fetched) {
        if (part_at(fetched).offloaded) visitor.fetch(part_at(fetched), fetched);
      }
    }
    const std::size_t group = part_at(place).group;
    if (backward && group > 1 && part_at(place).ends_group()) {
      for (std::size_t i = 0; i < group; ++i) {
        gather_for(place + i);
        visitor.rerun(part_at(place + group - 1 - i), place + group - 1 - i);
      }
    }
    visitor.run(part_at(place), place);
    if (phase == SlotPhase::Forward && place > 0 && part_at(place - 1).offloaded)
      visitor.store(part_at(place - 1), place - 1);
    if (completes_gradients(phase)) visitor.reduce(part_at(place), place);
  }
}

}  // namespace shardwright
