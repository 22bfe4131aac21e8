// Reads the JSON of PyTorch's profiler from memory.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "calibration/traces/kineto.hpp"

namespace shardwright::calibration {

// Errors name the text "text.json".
inline Trace read_kineto_text(const std::string& text) {
  std::size_t at = 0;
  const ByteSource bytes = [&](char* to, std::size_t most) {
    const std::size_t count = std::min(most, text.size() - at);
    std::memcpy(to, text.data() + at, count);
    at += count;
    return count;
  };
  return read_kineto(bytes, "text.json");
}

}  // namespace shardwright::calibration
