// Published measurements that travel with the project, for the tests of how they are read.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

inline const std::string kShipped = SHARDWRIGHT_SOURCE_DIR "/tests/ground_truth/training.jsonl";

inline TrainingRow shipped_row(const std::string& id) {
  return find_training_row(kShipped, id);
}

inline bool any_says(const std::vector<std::string>& texts, const std::string& part) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

}  // namespace shardwright::sim
