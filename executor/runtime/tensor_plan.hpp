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
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "core/program/program.hpp"
#include "core/program/program_checks.hpp"

namespace shardwright::executor {

// The last op of each queue that uses a block, or kNoOp.
using Users = std::vector<std::uint32_t>;
inline constexpr std::uint32_t kNoOp = UINT32_MAX;

// Keeps the later op of each queue.
void add_users(Users& users, const Users& more);

// Allocates blocks of one memory region whose users run asynchronously in several queues.
class Arena {
 public:
  // Alignment of blocks in bytes.
  static constexpr std::size_t kAlignment = 256;

  // Places a block in the smallest free range that fits, or at the end. Adds to `users` the ops
  // that must end before the memory is used again.
  std::size_t place(std::size_t bytes, Users& users);
  // Frees a block; `users` have used it.
  void free(std::size_t offset, const Users& users);

  std::size_t bytes() const { return end_; }

 private:
  struct Range {
    std::size_t bytes = 0;
    bool free = false;
    Users users;
  };
  using Ranges = std::map<std::size_t, Range>;

  Ranges::iterator best_fit(std::size_t bytes);
  Ranges::iterator grow(std::size_t bytes);

  // Contiguous ranges by offset.
  Ranges ranges_;
  std::size_t end_ = 0;
};

// Offsets of an op's operands in the arena, and the ops that must end before it may run: those that
// the program names and those whose memory it takes over.
struct OpMemory {
  std::vector<std::size_t> reads, writes;
  std::vector<std::uint32_t> waits;
  // The op is the first to add to a gradient among the tensors.
  bool begins_gradient = false;
};

// Bytes that a call's tensor takes in the arena.
using TensorBytes = std::function<std::size_t(TensorRef, const Call&)>;

// Visits the ops of a rank in the order of issue, each with the parts that its call covers.
void for_each_placed(
    const Program& program, const RankProgram& rank,
    const std::function<void(const PlacedOp&, std::span<const PartId> covered)>& visit);

class TensorPlan {
 public:
  TensorPlan(const Program& program, const RankProgram& rank, const Queues& queues,
             const TensorBytes& bytes_of);

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
