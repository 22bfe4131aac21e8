// Bandwidths as sources state them: rounded, in bits or bytes, of one port or of several.
#pragma once

#include <cmath>

#include "core/base/units.hpp"

namespace shardwright::sim {

// Zero stands for what a source does not say.
inline bool is_said(BytesPerSecond bandwidth) {
  return bandwidth.value() > 0.0;
}

// How far apart two bandwidths are: the logarithm of their ratio, without its sign. Zero where they
// are the same but for rounding (800 Gb/s, 4 x 200 Gb/s, 100 GB/s).
inline double bandwidth_distance(BytesPerSecond a, BytesPerSecond b) {
  constexpr double kRounding = 0.02;
  const double distance = std::abs(std::log(a / b));
  return distance < kRounding ? 0.0 : distance;
}

inline bool is_same(BytesPerSecond a, BytesPerSecond b) {
  return bandwidth_distance(a, b) == 0.0;
}

}  // namespace shardwright::sim
