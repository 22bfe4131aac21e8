// The factors by which a rank's kernels take longer than their prices: known slow ranks and random
// spread.
//
// Random factors are log-normal with mean 1: exp(s z - s^2 / 2) for a standard normal z. z is a
// pure function of (seed, rank, op), so it does not depend on the order in which a simulation asks
// (a counter-based generator: SplitMix64's mixing function, Steele et al. 2014, and Box-Muller).
#pragma once

#include <cstdint>
#include <vector>

namespace shardwright::sim {

inline constexpr double kMostJitter = 10.0;

struct RankVariation {
  // The factor of each rank, above 0; empty: 1 for each.
  std::vector<double> rank_slowdown;
  // The s of a factor for all kernels of a rank, at least 0.
  double rank_jitter = 0.0;
  // The s of a factor for each kernel, at least 0.
  double op_jitter = 0.0;
  std::uint64_t seed = 0;
};

// Throws InputError if a factor is not above zero, or if there is not one for each rank.
void check_variation(const RankVariation& variation, std::int64_t ranks);

// A factor for all kernels of the rank.
double rank_factor(const RankVariation& variation, std::uint32_t rank);

// A further factor for one kernel.
double op_factor(const RankVariation& variation, std::uint32_t rank, std::uint32_t op);

}  // namespace shardwright::sim
