#include "sim/cost/slowest_device.hpp"

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <numbers>

namespace shardwright::sim {

double expected_extreme(std::int64_t devices) {
  if (devices <= 1) return 0.0;
  const auto n = static_cast<double>(devices);
  const double quantile = (n - 0.375) / (n + 0.25);
  return std::max(0.0, std::numbers::sqrt2 * boost::math::erf_inv(2.0 * quantile - 1.0));
}

double slowest_device_factor(const AcceleratorSpec& accelerator, std::int64_t devices) {
  if (accelerator.speed_variation <= 0.0) return 1.0;
  return 1.0 + accelerator.speed_variation * expected_extreme(devices);
}

}  // namespace shardwright::sim
