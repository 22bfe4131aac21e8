// The tokens of each sequence that a context-parallel rank holds.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/spec/plan.hpp"

namespace shardwright::executor {

// Mirrored: a sequence is cut into 2 * ranks chunks, of which rank r holds the r-th from either
// end, so that the causal mask costs all ranks the same. Otherwise a rank holds the r-th of `ranks`
// chunks.
struct SequencePart {
  std::int64_t ranks = 1, rank = 0;
  bool mirrored = true;

  // Returns the position in the sequence of the token with this index among the `held` ones.
  std::int64_t position(std::int64_t index, std::int64_t held) const {
    if (ranks == 1) return index;
    if (!mirrored) return rank * held + index;
    const std::int64_t chunk = held / 2;
    return index < chunk ? rank * chunk + index : (2 * ranks - 2 - rank) * chunk + index;
  }

  // Returns how many of the `held` tokens have at most this position: the first ones.
  std::int64_t held_up_to(std::int64_t position, std::int64_t held) const {
    const auto of_chunk = [position](std::int64_t first, std::int64_t tokens) {
      return std::clamp(position + 1 - first, std::int64_t{0}, tokens);
    };
    if (ranks == 1) return of_chunk(0, held);
    if (!mirrored) return of_chunk(rank * held, held);
    const std::int64_t chunk = held / 2;
    return of_chunk(rank * chunk, chunk) + of_chunk((2 * ranks - 1 - rank) * chunk, chunk);
  }
};

// With Ulysses each rank computes some heads of whole sequences, so that any split costs the same.
inline SequencePart sequence_part(const Plan& plan, std::int64_t context_rank) {
  return {plan.cp, context_rank, plan.context_parallel != ContextParallelKind::Ulysses};
}

}  // namespace shardwright::executor
