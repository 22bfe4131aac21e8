// Batch profiles as JSON (schema "shardwright/batch", version 1).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/spec/batch_spec.hpp"

namespace shardwright {

// Throws InputError with all problems; `source` names the document in them.
BatchSpec read_batch(const nlohmann::json& document, const std::string& source);

nlohmann::ordered_json to_json(const BatchSpec& spec);

}  // namespace shardwright
