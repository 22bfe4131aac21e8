// Where the tensors of a step lie: one arena, laid out before the first step from what the ops
// write and free in the order of issue.
//
// Memory that was freed is used again at once in the order of issue, though ops of other streams
// may still work on it: an op that takes it over waits for them. A tensor that is sent stays until
// so many more were sent through the same queue that the peer has surely asked for it: ops that
// waited for a send would otherwise make two ranks wait for each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/program/program.hpp"
#include "core/program/program_checks.hpp"

namespace shardwright::executor {

// The operands of an op, as bytes from the start of the arena, and the ops that must have ended
// before it may run: those that the program names, and those whose memory it takes over.
struct OpMemory {
  std::vector<std::size_t> reads, writes;
  std::vector<std::uint32_t> waits;
};

class TensorPlan {
 public:
  TensorPlan(const Program& program, const RankProgram& rank, const Queues& queues);

  // Of the op with this number.
  const OpMemory& of(std::uint32_t op) const { return ops_[op]; }
  std::size_t arena_bytes() const { return arena_bytes_; }
  // The most bytes of tensors that are alive at once, as the program counts them.
  std::size_t peak_bytes() const { return peak_bytes_; }

 private:
  std::vector<OpMemory> ops_;
  std::size_t arena_bytes_ = 0, peak_bytes_ = 0;
};

}  // namespace shardwright::executor
