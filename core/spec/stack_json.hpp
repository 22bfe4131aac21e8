// Stack profiles as JSON (schema "shardwright/stack", version 1).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/spec/stack_spec.hpp"

namespace shardwright {

// Throws InputError with all problems; `source` names the document in them. What the document
// leaves out takes StackSpec's default and is listed in `filled_in`.
StackSpec read_stack(const nlohmann::json& document, const std::string& source);

nlohmann::ordered_json to_json(const StackSpec& spec);

}  // namespace shardwright
