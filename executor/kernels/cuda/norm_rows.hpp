// The longest rows that norms on a GPU support.
#pragma once

#include <cstdint>

namespace shardwright::executor {

// A block keeps a row in its registers (norm.cu), in at most this many packs per thread.
inline constexpr unsigned kMaxNormThreads = 256;
inline constexpr int kMaxNormPacks = 8;

// Rows of a multiple of 8 elements are read in packs of 8, others element by element.
constexpr std::int64_t longest_norm_row(bool multiple_of_8) {
  return std::int64_t{multiple_of_8 ? 8 : 1} * kMaxNormThreads * kMaxNormPacks;
}

}  // namespace shardwright::executor
