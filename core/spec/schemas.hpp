// The JSON Schemas of Shardwright's documents.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace shardwright {

// "accelerator", "cluster", …
std::vector<std::string> schema_names();

// Throws InputError, with the nearest name, if there is no schema of this name.
nlohmann::ordered_json schema_of(const std::string& name);

}  // namespace shardwright
