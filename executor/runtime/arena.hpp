// Allocates blocks of one memory region whose users run asynchronously in several queues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace shardwright::executor {

// The last op of each queue that uses a block, or kNoOp.
using Users = std::vector<std::uint32_t>;
inline constexpr std::uint32_t kNoOp = UINT32_MAX;

// Keeps the later op of each queue.
void add_users(Users& users, const Users& more);

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

}  // namespace shardwright::executor
