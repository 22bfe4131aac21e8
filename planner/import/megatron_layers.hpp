// The kinds of a model's layers that Megatron-LM's arguments describe: attention, state-space or
// linear-attention mixers, feed-forward blocks and experts.
#pragma once

#include <cstdint>
#include <vector>

#include "core/spec/model_spec.hpp"
#include "planner/import/megatron_settings.hpp"

namespace shardwright::planner {

// The number of layers, or that of the pattern's letters where it alone states them. A problem
// where no argument does.
std::int64_t number_of_layers(MegatronSettings& settings);

// Fills the pattern of the layers and their linear attention. Sizes and experts must be there.
// Layers that no model here has, as those of encoders or layers of different sizes, become problems
// at their arguments.
void read_layer_kinds(MegatronSettings& settings, ModelSpec& model);

// The layers of each chunk of the pipeline where the pattern of a hybrid model states them,
// "M-M*|M-M-"; empty otherwise.
std::vector<std::int64_t> hybrid_chunks(MegatronSettings& settings);

}  // namespace shardwright::planner
