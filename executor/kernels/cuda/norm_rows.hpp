// How long the rows are that norms on a GPU take.
#pragma once

#include <cstdint>

namespace shardwright::executor {

// A block of threads keeps a row in its registers (norm.cu): each thread this many packs of it.
inline constexpr unsigned kMostNormThreads = 256;
inline constexpr int kMostNormPacks = 8;

// The longest row of those that are a multiple of 8 elements, which are read in packs of 8, or of
// the others, which are read one by one.
constexpr std::int64_t longest_norm_row(bool multiple_of_8) {
  return std::int64_t{multiple_of_8 ? 8 : 1} * kMostNormThreads * kMostNormPacks;
}

}  // namespace shardwright::executor
