#include "sim/step/rank_variation.hpp"

#include <cmath>
#include <numbers>
#include <string>

#include "core/base/error.hpp"
#include "core/base/split_mix.hpp"

namespace shardwright::sim {
namespace {

// Stands for no op in particular.
constexpr std::uint32_t kWholeRank = UINT32_MAX;

// Returns a number in (0, 1].
double uniform(std::uint64_t bits) {
  return (static_cast<double>(bits >> 11) + 1.0) * 0x1p-53;
}

double log_normal(double sigma, std::uint64_t seed, std::uint32_t rank, std::uint32_t op) {
  const std::uint64_t first =
      split_mix(split_mix(seed) ^ (static_cast<std::uint64_t>(rank) << 32 | op));
  const double radius = std::sqrt(-2.0 * std::log(uniform(first)));
  const double normal = radius * std::cos(2.0 * std::numbers::pi * uniform(split_mix(first)));
  return std::exp(sigma * normal - 0.5 * sigma * sigma);
}

}  // namespace

void check_variation(const RankVariation& variation, std::int64_t ranks) {
  ProblemList problems("rank variation");
  const auto& slowdown = variation.rank_slowdown;
  if (!slowdown.empty() && static_cast<std::int64_t>(slowdown.size()) != ranks) {
    problems.add("/rank_slowdown", std::to_string(slowdown.size()) + " factors",
                 "one for each of " + std::to_string(ranks) + " ranks");
  }
  for (std::size_t rank = 0; rank < slowdown.size(); ++rank) {
    if (!(slowdown[rank] > 0.0 && std::isfinite(slowdown[rank])))
      problems.add("/rank_slowdown/" + std::to_string(rank), std::to_string(slowdown[rank]),
                   "above 0");
  }
  const auto check_sigma = [&](const char* where, double sigma) {
    if (!(sigma >= 0.0 && sigma <= kMostJitter))
      problems.add(where, std::to_string(sigma), "0 to " + std::to_string(kMostJitter));
  };
  check_sigma("/rank_jitter", variation.rank_jitter);
  check_sigma("/op_jitter", variation.op_jitter);
  problems.throw_if_any();
}

double rank_factor(const RankVariation& variation, std::uint32_t rank) {
  const double known = variation.rank_slowdown.empty() ? 1.0 : variation.rank_slowdown[rank];
  if (variation.rank_jitter == 0.0) return known;
  return known * log_normal(variation.rank_jitter, variation.seed, rank, kWholeRank);
}

double op_factor(const RankVariation& variation, std::uint32_t rank, std::uint32_t op) {
  if (variation.op_jitter == 0.0) return 1.0;
  return log_normal(variation.op_jitter, variation.seed, rank, op);
}

}  // namespace shardwright::sim
