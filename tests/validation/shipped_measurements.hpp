// Published measurements that travel with the project.
#pragma once

#include <string>

#include "validation/measurement.hpp"

namespace shardwright::validation {

inline std::string shipped_file(const std::string& name) {
  return SHARDWRIGHT_SOURCE_DIR "/measurements/" + name + ".jsonl";
}

inline Measurement shipped(const std::string& source, const std::string& id) {
  return find_measurement(shipped_file("training/" + source), id);
}

}  // namespace shardwright::validation
