// The compressed forms in which replicas exchange numbers, on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/spec/plan.hpp"

namespace shardwright::executor {

// The forms of few bits have blocks (core/lowering/replica_exchange.hpp) with an fp32 scale each.
// Int8 has the numbers -127 to 127, fp8 those of E4M3 and fp4 those of E3M0, which the scale takes
// to the block's largest element; 1bit has signs, scaled by its mean absolute value. A part of
// whole blocks holds its codes, then its scales: coded_bytes of it. It may have more elements than
// `values`.
void to_codes(ReplicaCompression form, std::span<const float> values, std::size_t elements,
              std::byte* part);
// Adds the part's numbers to `sum`, which may have fewer elements.
void add_codes(ReplicaCompression form, const std::byte* part, std::size_t elements,
               std::span<float> sum);

// E4M3 of OCP's FP8 formats (arXiv 2209.05433): the nearest number, of two as near the even one,
// and ±448 for those beyond. The input is finite.
std::uint8_t to_e4m3(float value);
float from_e4m3(std::uint8_t code);

// E3M0 (arXiv 2501.18512), 4 bits without a mantissa: 0 and the powers of two from 1/64
// to 1, the nearest one of a number from -1 to 1.
std::uint8_t to_e3m0(float value);
float from_e3m0(std::uint8_t code);

// An element that top-k sends.
struct TopkElement {
  std::uint32_t place = 0;
  float value = 0.0F;
};
// The `count` largest elements by absolute value; of equal ones those at the front.
std::vector<TopkElement> largest_elements(std::span<const float> values, std::size_t count);

// Makes the columns of a row-major matrix orthonormal by Gram-Schmidt; a column that depends on
// those before it becomes zero.
void make_orthonormal(std::span<float> matrix, std::size_t rows, std::size_t columns);

// Products of row-major matrices for PowerSGD. P = M Q with the square matrix M of `rows` rows,
// whose last elements beyond `values` are zero.
void multiply_thin(std::span<const float> values, std::span<const float> q, std::size_t rows,
                   std::size_t columns, std::span<float> p);
// Q = M^T P.
void multiply_transposed(std::span<const float> values, std::span<const float> p, std::size_t rows,
                         std::size_t columns, std::span<float> q);
// The elements of P Q^T at the places of `values`.
void multiply_back(std::span<const float> p, std::span<const float> q, std::size_t rows,
                   std::size_t columns, std::span<float> values);

}  // namespace shardwright::executor
