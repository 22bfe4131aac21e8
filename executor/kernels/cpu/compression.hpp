// The compressed forms in which replicas exchange numbers, on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shardwright::executor {

// Int8: blocks of kInt8Block elements (core/lowering/replica_exchange.hpp), each an fp32 scale for
// the numbers -127 to 127. A part of whole blocks holds its numbers, then its scales: int8_bytes of
// it. It may have more elements than `values`.
void to_int8(std::span<const float> values, std::size_t elements, std::byte* part);
// Adds the part's numbers to `sum`, which may have fewer elements.
void add_int8(const std::byte* part, std::size_t elements, std::span<float> sum);

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
