// Run profiles as JSON (schema "shardwright/run", version 1).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/spec/run_spec.hpp"

namespace shardwright {

// Throws InputError with all problems; `source` names the document in them.
RunSpec read_run(const nlohmann::json& document, const std::string& source);

nlohmann::ordered_json to_json(const RunSpec& spec);

}  // namespace shardwright
