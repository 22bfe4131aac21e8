// The finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
// OOPSLA 2014): a bijection whose outputs look random for any inputs.
#pragma once

#include <cstdint>

namespace shardwright {

// What SplitMix64 adds to its state for each number.
inline constexpr std::uint64_t kSplitMixStep = 0x9e3779b97f4a7c15U;

constexpr std::uint64_t split_mix(std::uint64_t value) {
  value += kSplitMixStep;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

}  // namespace shardwright
