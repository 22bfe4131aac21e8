// Places the tensors of a step in one arena before the first step, from what the ops write and free
// in the order of issue.
//
// Freed memory is reused at once in the order of issue, although ops of other streams may still use
// it: an op that takes it over waits for them. A sent tensor is kept until so many more were sent
// through the same queue that the peer must have received it: if ops waited for a send, two ranks
// could deadlock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/program/program.hpp"
#include "core/program/program_checks.hpp"

namespace shardwright::executor {

// Offsets of an op's operands in the arena, and the ops that must end before it may run: those that
// the program names and those whose memory it takes over.
struct OpMemory {
  std::vector<std::size_t> reads, writes;
  std::vector<std::uint32_t> waits;
};

class TensorPlan {
 public:
  TensorPlan(const Program& program, const RankProgram& rank, const Queues& queues);

  // Returns the memory of the op with this number.
  const OpMemory& of(std::uint32_t op) const { return ops_[op]; }
  std::size_t arena_bytes() const { return arena_bytes_; }
  // The peak of the live tensors' bytes by the program's count.
  std::size_t peak_bytes() const { return peak_bytes_; }

 private:
  std::vector<OpMemory> ops_;
  std::size_t arena_bytes_ = 0, peak_bytes_ = 0;
};

}  // namespace shardwright::executor
