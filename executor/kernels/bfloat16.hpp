// Conversions between fp32 and bf16.
#pragma once

#include <bit>
#include <cstdint>

namespace shardwright::executor {

// Rounds to nearest, ties to even. NaN remains NaN.
inline std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

inline float from_bfloat16(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16U);
}

}  // namespace shardwright::executor
