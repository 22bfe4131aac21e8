// How much of its layers a plan recomputes, in the words of sources.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"

namespace shardwright::sim {

// Of what a number of layers is counted.
enum class LayersOf : std::uint8_t {
  Chunk,        // of each chunk, as Megatron-LM's --recompute-num-layers
  Model,        // "the first 8 layers"
  AllButModel,  // "all but the last 4 layers": those that are not recomputed
  AllButChunk,  // … of each chunk
  AllButStage,  // "full, none for the last stage": the number is that of stages
};

struct RecomputeWords {
  RecomputePolicy policy = RecomputePolicy::None;
  std::int64_t layers = 0;  // with Full; 0: all
  std::int64_t every = 1;   // of so many layers one, with Full
  LayersOf of = LayersOf::Chunk;
  double share = 1.0;  // of the layers, with Full: "16 of 32 layers", "25 %"

  bool operator==(const RecomputeWords&) const = default;
};

// "none", "off", "without checkpointing"; "selective", "core_attn"; "full", "uniform" (all layers,
// whatever number of them is a block), "block 4", "full on 4 layers" (Megatron-LM,
// --recompute-method); "every 2 layers"; "full except last 4 layers", "first 8 layers", "16/32
// layers", "half of the layers", "0.5". None for what is not known or "not stated".
std::optional<RecomputeWords> recompute_in(std::string_view text);

// "16 of 32 layers", "all but the last 4 layers": not all of them, nor a policy of each.
bool recomputes_part_of_layers(const std::string& text);

// Sets policy and layers of the plan, whose degrees and chunks are set: as many of each chunk.
// Returns what of the words that does not say, empty if it says all.
std::string set_recompute(const RecomputeWords& words, const ModelSpec& model, Plan& plan);

}  // namespace shardwright::sim
