// Models in Shardwright's own file format: JSON with "schema": "shardwright/model", "version": 1.
//
// Keys are the field names of ModelSpec. name, layers, hidden, vocab, attention.heads,
// attention.head_dim and mlp.ffn_hidden are required (for multi-head latent attention also
// kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim and v_head_dim, which replace head_dim; for
// experts also experts, top_k and expert_ffn); what else is left out has the default of ModelSpec,
// with kv_heads = heads. A "parameters" object, as the command `models show` writes it, is skipped.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/spec/model_spec.hpp"

namespace shardwright {

inline constexpr const char* kModelSchema = "shardwright/model";

// Throws InputError with every problem of the file: a wrong type or range, an unknown key, fields
// that contradict each other. `source` names the file in errors.
ModelSpec read_model(const nlohmann::json& value, const std::string& source);

// The inverse of read_model: every field, in the order of ModelSpec.
nlohmann::ordered_json to_json(const ModelSpec& model);

}  // namespace shardwright
