#include "core/lowering/modules/expert_load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/normal_extremes.hpp"
#include "core/spec/pools.hpp"

namespace shardwright {
namespace {

// The density of the standard normal distribution.
double density(double x) {
  return std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}
double share_below(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

// True if all ranks work on as many rows.
bool is_even(const MoeSpec& moe) {
  return moe.balanced_routing || moe.load_variation == 0.0 || moe.pads_to_capacity;
}

struct KeptTokens {
  // Moments relative to the even share of an expert.
  double mean, deviation;
};

// The first two moments of min(X, c) for a normal X: their parts below c, and at c.
KeptTokens kept_tokens(const MoeSpec& moe) {
  const double variation = moe.balanced_routing ? 0.0 : moe.load_variation;
  const double most = moe.capacity_factor;
  if (most == 0.0) return {1.0, variation};
  if (variation == 0.0) return {std::min(1.0, most), 0.0};
  const double end = (most - 1.0) / variation;
  const double below = share_below(end), at_end = density(end), beyond = share_below(-end);
  const double mean = below - variation * at_end + most * beyond;
  const double square = below - 2.0 * variation * at_end +
                        variation * variation * (below - end * at_end) + most * most * beyond;
  return {mean, std::sqrt(std::max(0.0, square - mean * mean))};
}

}  // namespace

double expert_rows_ratio(const MoeSpec& moe) {
  return moe.pads_to_capacity ? moe.capacity_factor : kept_tokens(moe).mean;
}

double expert_load(const ModelSpec& model, const Plan& plan) {
  if (!model.moe || is_even(*model.moe) || plan.ep == 1) return 1.0;
  const auto [mean, deviation] = kept_tokens(*model.moe);
  const std::int64_t experts = experts_of_rank(plan, model.moe->experts);
  double most =
      mean + deviation / std::sqrt(static_cast<double>(experts)) * expected_maximum(plan.ep);
  if (model.moe->capacity_factor > 0.0) most = std::min(most, model.moe->capacity_factor);
  return std::min(most / mean, static_cast<double>(plan.ep));
}

std::string load_assumption(const ModelSpec& model) {
  if (!model.moe || is_even(*model.moe)) return {};
  return fmt::format(
      "moe/load_variation: experts of a learned router get {:g} % more or fewer tokens",
      100.0 * model.moe->load_variation);
}

}  // namespace shardwright
