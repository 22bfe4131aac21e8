// The low-rank adapters of a model (LoRA, arXiv 2106.09685): a projection W gets a bypass B A,
// where A has `rank` rows and B as many columns. The adapters are trained; everything else is
// frozen.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"

namespace shardwright {

// The projections of the model that adapters may be added to.
LoraTargetSet lora_targets(const ModelSpec& model);

// Those that have adapters: the ones that `lora` names, or all if it names none.
LoraTargetSet chosen_targets(const ModelSpec& model, const Lora& lora);

// True if routed experts have adapters, and if anything else has: the groups of ranks that hold the
// same of them differ.
bool adapts_experts(const ModelSpec& model, const Lora& lora);
bool adapts_others(const ModelSpec& model, const Lora& lora);

// The next three take the name of a weight as ops have it: "layers.*.attention.q_proj".

// True if the weight has an adapter, alone or together with others.
bool is_adapted(const Lora& lora, std::string_view weight);

// The name of the weight's adapter: that of the weight, or of all that share the adapter.
std::string adapter_of(const Lora& lora, std::string_view weight);

// True if the weight lies in memory in 4 bits: the projections of the layers, not their router, and
// neither embedding nor output head.
bool is_quantized(const Lora& lora, std::string_view weight);

// Bytes of a weight in NF4: 4 bits, a constant of 8 bits for 64 weights, and one in fp32 for 256 of
// these (double quantization: arXiv 2305.14314, section 3).
inline constexpr double kNf4Bytes = (4.0 + 8.0 / 64.0 + 32.0 / (64.0 * 256.0)) / 8.0;

// The parameters of a layer's adapters: "layers.3.attention.q_proj.lora_a.weight", then "lora_b".
//
// If the output of a projection is split over tensor-parallel ranks, each rank holds all of A and
// its own rows of B; if its input is split, each rank holds its own columns of A and all of B
// (torchtitan, components/lora.py). No adapter then needs a collective: what it adds joins the
// output, or the gradient of the input, before the collective of its projection. The gradients of
// what all ranks hold are added up at the end of the step.
std::vector<ParameterTensor> adapter_parameters(const ModelSpec& model, const Lora& lora,
                                                std::int64_t layer);

// The number of parameters of all adapters, and the part of it that belongs to routed experts.
struct AdapterCount {
  std::int64_t total = 0, routed = 0;
};
AdapterCount count_adapters(const ModelSpec& model, const Lora& lora);

}  // namespace shardwright
