// Models from Hugging Face configuration files (config.json).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/spec/model_spec.hpp"

namespace shardwright {

// The `model_type` values that import_huggingface reads, sorted.
std::vector<std::string> huggingface_model_types();

// Reads a configuration. Keys that say nothing about sizes are skipped; optional keys that are
// missing have the default of the model type's configuration class in the transformers library
// (num_key_value_heads and tie_word_embeddings differ between types). The model is named after
// `_name_or_path` if that is there, otherwise after its type.
//
// Throws InputError with every problem: an unknown model_type (with the nearest known one), a
// missing, mistyped or impossible size, a layout that ModelSpec cannot express.
ModelSpec import_huggingface(const nlohmann::json& value, const std::string& source);

}  // namespace shardwright
