// Published measurements that travel with the project.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "validation/measurement.hpp"

namespace shardwright::validation {

inline std::string shipped_file(const std::string& name) {
  return SHARDWRIGHT_SOURCE_DIR "/measurements/" + name + ".jsonl";
}

inline Measurement shipped(const std::string& source, const std::string& id) {
  return find_measurement(shipped_file("training/" + source), id);
}

// The row with another value at `pointer`.
inline nlohmann::json with(nlohmann::json row, const char* pointer, const nlohmann::json& value) {
  row[nlohmann::json::json_pointer(pointer)] = value;
  return row;
}

}  // namespace shardwright::validation
