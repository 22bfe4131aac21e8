// The factor by which the slowest of many devices is slower than the usual one: it sets the pace of
// a synchronous step.
#pragma once

#include <cstdint>

#include "core/base/normal_extremes.hpp"
#include "core/spec/cluster_spec.hpp"

namespace shardwright::sim {

// Expected time of a kernel on the slowest of `devices`, over that on the usual one, at least 1.
// Speeds are normally distributed with the accelerator's `speed_variation`.
inline double slowest_device_factor(const AcceleratorSpec& accelerator, std::int64_t devices) {
  if (accelerator.speed_variation <= 0.0) return 1.0;
  return 1.0 + accelerator.speed_variation * expected_maximum(devices);
}

}  // namespace shardwright::sim
