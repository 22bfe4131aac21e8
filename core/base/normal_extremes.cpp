#include "core/base/normal_extremes.hpp"

#include <cmath>
#include <numbers>

namespace shardwright {
namespace {

// phi(x) Phi(x)^(n-1) vanishes beyond this for all counts that a plan may have.
constexpr double kFarthest = 9.0;
constexpr int kSteps = 360;

double density_of_maximum(double x, double count) {
  const double density = std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  const double share_below = 0.5 * std::erfc(-x / std::numbers::sqrt2);
  return count * density * std::pow(share_below, count - 1.0);
}

}  // namespace

// The trapezoidal rule, which is exact to all digits for a function that vanishes at both ends.
double expected_maximum(std::int64_t count) {
  if (count <= 1) return 0.0;
  constexpr double kStep = 2.0 * kFarthest / kSteps;
  double sum = 0.0;
  for (int i = 1; i < kSteps; ++i) {
    const double x = -kFarthest + kStep * i;
    sum += x * density_of_maximum(x, static_cast<double>(count));
  }
  return sum * kStep;
}

}  // namespace shardwright
