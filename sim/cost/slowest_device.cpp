#include "sim/cost/slowest_device.hpp"

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <numbers>

namespace shardwright::sim {

double slowest_device_factor(const AcceleratorSpec& accelerator, std::int64_t devices) {
  if (accelerator.speed_variation <= 0.0 || devices <= 1) return 1.0;
  const auto n = static_cast<double>(devices);
  const double quantile = (n - 0.375) / (n + 0.25);
  const double deviations = std::numbers::sqrt2 * boost::math::erf_inv(2.0 * quantile - 1.0);
  return 1.0 + accelerator.speed_variation * std::max(0.0, deviations);
}

}  // namespace shardwright::sim
