// Number formats of weights, activations and matrix multiplications.
#pragma once

#include <cstdint>

#include "core/base/units.hpp"

namespace shardwright {

enum class Precision : std::uint8_t { Fp32, Tf32, Fp16, Bf16, Fp8 };

// Bytes that one element takes in memory. TF32 is a way to multiply fp32 data; FP8 training keeps
// its weights and activations in bf16 and casts on the way into a GEMM.
constexpr Bytes storage_bytes(Precision precision) {
  return Bytes(precision == Precision::Fp32 || precision == Precision::Tf32 ? 4.0 : 2.0);
}

// "fp32", "tf32", "fp16", "bf16" or "fp8".
const char* name_of(Precision precision);

}  // namespace shardwright
