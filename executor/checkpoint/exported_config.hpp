// The config.json of exported weights.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "core/spec/model_spec.hpp"

namespace shardwright::executor {

// Returns the configuration under which Hugging Face's transformers computes what the model does,
// as a Llama, Qwen2, Qwen3 or GPT-2; nothing if none of these does. `dtype` is the format of the
// weights in the words of PyTorch ("bfloat16").
std::optional<nlohmann::ordered_json> exported_config(const ModelSpec& model,
                                                      const std::string& dtype);

}  // namespace shardwright::executor
