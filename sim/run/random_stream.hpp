// Random numbers that depend on nothing but their seed, by SplitMix64.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "core/base/split_mix.hpp"

namespace shardwright::sim {

class RandomStream {
 public:
  // Streams of different names (two numbers) under one seed are independent of each other.
  RandomStream(std::uint64_t seed, std::uint64_t first, std::uint64_t second)
      : state_(split_mix(split_mix(split_mix(seed) + first) + second)) {}

  // Uniformly distributed in (0, 1).
  double uniform() {
    state_ += kSplitMixStep;
    return (static_cast<double>(split_mix(state_) >> 11) + 0.5) * 0x1p-53;
  }
  // Exponentially distributed with mean 1.
  double exponential() { return -std::log(uniform()); }
  // Normally distributed with mean 0 and standard deviation 1 (Box and Muller).
  double normal() {
    const double radius = std::sqrt(2.0 * exponential());
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t state_;
};

}  // namespace shardwright::sim
