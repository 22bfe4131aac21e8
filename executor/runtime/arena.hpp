// Places blocks in one stretch of memory whose users run at their own pace, in several queues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace shardwright::executor {

// By queue the last op that works on a block; kNoOp: none does.
using Users = std::vector<std::uint32_t>;
inline constexpr std::uint32_t kNoOp = UINT32_MAX;

// For each queue the later one of the two.
void add_users(Users& users, const Users& more);

class Arena {
 public:
  static constexpr std::size_t kAlignment = 256;  // bytes, of each block

  // The smallest free range that holds the block, or the end. Adds those whose work on the memory
  // must have ended before to `users`.
  std::size_t place(std::size_t bytes, Users& users);
  // Gives a block back; `users` worked on it.
  void free(std::size_t offset, const Users& users);

  // That blocks have taken at most.
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

  Ranges ranges_;  // by offset, without gaps
  std::size_t end_ = 0;
};

}  // namespace shardwright::executor
