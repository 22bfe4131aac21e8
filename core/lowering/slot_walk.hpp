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
};

// The parts of the chunk at `position`, in forward order. `Parts` is BlockSet or has its members.
template <class Parts, class Part = decltype(Parts::embedding)>
std::vector<ChunkPart<Part>> parts_of_chunk(const Parts& parts, const Plan& plan,
                                            const std::vector<LayerRange>& ranges,
                                            std::size_t position) {
  const LayerRange& range = ranges[position];
  const bool recomputes = plan.reruns_layers();
  std::vector<ChunkPart<Part>> chunk;
  chunk.reserve(static_cast<std::size_t>(range.count) + 2);
  if (position == 0) chunk.push_back({&parts.embedding});
  for (std::int64_t i = 0; i < range.count; ++i) {
    const auto layer = static_cast<std::int32_t>(range.first + i);
    const auto kind =
        static_cast<std::size_t>(parts.kind_of_layer[static_cast<std::size_t>(layer)]);
    const bool recomputed = recomputes && (plan.recompute_layers == 0 || i < plan.recompute_layers);
    const Part& part = recomputed ? parts.recomputed[kind] : parts.kept[kind];
    // The last layer of a chunk keeps its activations, since its backward pass may come next.
    const bool waits_there = plan.offload_layers == 0 || i < plan.offload_layers;
    chunk.push_back({&part, layer, part.offloads && waits_there && i + 1 < range.count});
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
  std::size_t gathered = 0, fetched = 0;
  for (std::size_t place = 0; place < count; ++place) {
    if (sharded.gathers && phase != SlotPhase::BackwardWeight) {
      for (; gathered < std::min(place + sharded.ahead + 1, count); ++gathered)
        visitor.gather(part_at(gathered), gathered);
    }
    if (hands_gradient_on(phase)) {
      for (; fetched < std::min(place + 2, count); ++fetched) {
        if (part_at(fetched).offloaded) visitor.fetch(part_at(fetched), fetched);
      }
    }
    visitor.run(part_at(place), place);
    if (phase == SlotPhase::Forward && place > 0 && part_at(place - 1).offloaded)
      visitor.store(part_at(place - 1), place - 1);
    if (completes_gradients(phase)) visitor.reduce(part_at(place), place);
  }
}

}  // namespace shardwright
