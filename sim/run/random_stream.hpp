// Random numbers that depend on nothing but their seed: SplitMix64 (Steele, Lea, Flood, Fast
// Splittable Pseudorandom Number Generators, OOPSLA 2014).
#pragma once

#include <cmath>
#include <cstdint>

namespace shardwright::sim {

class RandomStream {
 public:
  // Streams of different names (two numbers) under one seed are independent of each other.
  RandomStream(std::uint64_t seed, std::uint64_t first, std::uint64_t second)
      : state_(mixed(mixed(mixed(seed) + first) + second)) {}

  // Uniformly distributed in (0, 1).
  double uniform() {
    state_ += kStep;
    return (static_cast<double>(mixed(state_) >> 11) + 0.5) * 0x1p-53;
  }
  // Exponentially distributed with mean 1.
  double exponential() { return -std::log(uniform()); }
  // Normally distributed with mean 0 and standard deviation 1 (Box and Muller).
  double normal() {
    const double radius = std::sqrt(2.0 * exponential());
    return radius * std::cos(6.283185307179586 * uniform());
  }

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;

  static std::uint64_t mixed(std::uint64_t x) {
    x += kStep;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  std::uint64_t state_;
};

}  // namespace shardwright::sim
