#include "sim/cost/slowest_device.hpp"

#include "core/base/normal_extremes.hpp"

namespace shardwright::sim {

double slowest_device_factor(const AcceleratorSpec& accelerator, std::int64_t devices) {
  if (accelerator.speed_variation <= 0.0) return 1.0;
  return 1.0 + accelerator.speed_variation * expected_maximum(devices);
}

}  // namespace shardwright::sim
