// The tokens of each sequence that a context-parallel rank holds.
#pragma once

#include <cstdint>

namespace shardwright::executor {

// A sequence is cut into 2 * ranks chunks, of which rank r holds the r-th from either end: the
// causal mask then costs all ranks the same.
struct SequencePart {
  std::int64_t ranks = 1, rank = 0;

  // Returns the position in the sequence of the token with this index among the `held` ones.
  std::int64_t position(std::int64_t index, std::int64_t held) const {
    if (ranks == 1) return index;
    const std::int64_t chunk = held / 2;
    return index < chunk ? rank * chunk + index : (2 * ranks - 2 - rank) * chunk + index;
  }
};

}  // namespace shardwright::executor
