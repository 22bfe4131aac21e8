// Number formats of weights, activations and matrix multiplications.
#pragma once

#include <array>
#include <cstdint>

#include "core/base/enum_names.hpp"
#include "core/base/units.hpp"

namespace shardwright {

enum class Precision : std::uint8_t { Fp32, Tf32, Fp16, Bf16, Fp8, Nvfp4 };
constexpr auto enum_names(Precision) {
  return std::array{"fp32", "tf32", "fp16", "bf16", "fp8", "nvfp4"};
}
inline constexpr auto kPrecisions = enumerators<Precision>();

// True of formats of matrix products alone: weights and activations stay in bf16 and are cast on
// their way into a product.
constexpr bool casts_operands(Precision precision) {
  return precision == Precision::Fp8 || precision == Precision::Nvfp4;
}

// The scales of FP8 operands.
enum class Fp8Recipe : std::uint8_t {
  Delayed,     // one scale for a tensor, from the largest values of earlier steps
  Tensorwise,  // one scale for a tensor, from its own largest value
  Rowwise,     // one scale for a row and one for a column
  Blockwise,   // one scale for 128 elements or 128 x 128, in fp32 (DeepSeek-V3)
  Mxfp8,       // one scale of 8 bits for 32 elements (OCP Microscaling)
};
constexpr auto enum_names(Fp8Recipe) {
  return std::array{"delayed", "tensorwise", "rowwise", "blockwise", "mxfp8"};
}

// Bytes that one element takes in memory. TF32 is a way to multiply fp32 data.
constexpr Bytes storage_bytes(Precision precision) {
  return Bytes(precision == Precision::Fp32 || precision == Precision::Tf32 ? 4.0 : 2.0);
}

// Bytes that one element of a matrix product's operand takes. NVFP4 has 4 bits each and a scale of
// 8 bits for every 16 (arXiv 2509.25149, section 2).
constexpr Bytes operand_bytes(Precision precision) {
  if (precision == Precision::Nvfp4) return Bytes(0.5 + 1.0 / 16.0);
  return precision == Precision::Fp8 ? Bytes(1.0) : storage_bytes(precision);
}

}  // namespace shardwright
