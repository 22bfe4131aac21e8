// Models in Shardwright's own file format: JSON with "schema": "shardwright/model", "version": 1.
//
// docs/formats/model.md lists the fields. A "parameters" object, as the command `models show`
// writes it, is skipped.
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
