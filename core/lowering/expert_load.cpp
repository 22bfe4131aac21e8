#include "core/lowering/expert_load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace shardwright {
namespace {

// phi(x) Phi(x)^(n-1) vanishes beyond this for all counts that a plan may have.
constexpr double kFarthest = 9.0;
constexpr int kSteps = 360;

double density_of_maximum(double x, double count) {
  const double below = 0.5 * std::erfc(-x / std::numbers::sqrt2);
  const double density = std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return count * density * std::pow(below, count - 1.0);
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

double expert_load(const ModelSpec& model, const Plan& plan) {
  if (!model.moe || model.moe->balanced_routing || plan.ep == 1) return 1.0;
  const double experts = std::max(1.0, static_cast<double>(model.moe->experts / plan.ep));
  const double variation = model.moe->load_variation / std::sqrt(experts);
  return std::min(1.0 + variation * expected_maximum(plan.ep), static_cast<double>(plan.ep));
}

std::string load_assumption(const ModelSpec& model) {
  if (!model.moe || model.moe->balanced_routing || model.moe->load_variation == 0.0) return {};
  return fmt::format(
      "moe/load_variation: experts of a learned router get {:g} % more or fewer tokens",
      100.0 * model.moe->load_variation);
}

}  // namespace shardwright
