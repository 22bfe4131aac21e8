#include "executor/runtime/arena.hpp"

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"

namespace shardwright::executor {

void add_users(Users& users, const Users& more) {
  users.resize(std::max(users.size(), more.size()), kNoOp);
  for (std::size_t queue = 0; queue < more.size(); ++queue) {
    if (more[queue] == kNoOp) continue;
    const std::uint32_t known = users[queue];
    users[queue] = known == kNoOp ? more[queue] : std::max(known, more[queue]);
  }
}

std::size_t Arena::place(std::size_t bytes, Users& users) {
  const std::size_t needed =
      std::max((bytes + kAlignment - 1) / kAlignment, std::size_t{1}) * kAlignment;
  auto range = best_fit(needed);
  if (range == ranges_.end()) range = grow(needed);
  Range& taken = range->second;
  add_users(users, taken.users);
  if (taken.bytes > needed)
    ranges_[range->first + needed] = {taken.bytes - needed, true, taken.users};
  taken = {needed, false, {}};
  return range->first;
}

Arena::Ranges::iterator Arena::best_fit(std::size_t bytes) {
  auto best = ranges_.end();
  for (auto range = ranges_.begin(); range != ranges_.end(); ++range) {
    const Range& here = range->second;
    if (!here.free || here.bytes < bytes) continue;
    if (best == ranges_.end() || here.bytes < best->second.bytes) best = range;
  }
  return best;
}

// Extends a free range at the end, or appends a new one.
Arena::Ranges::iterator Arena::grow(std::size_t bytes) {
  if (!ranges_.empty() && ranges_.rbegin()->second.free) {
    const auto last = std::prev(ranges_.end());
    last->second.bytes = bytes;
    end_ = last->first + bytes;
    return last;
  }
  const auto added = ranges_.emplace(end_, Range{bytes, true, {}}).first;
  end_ += bytes;
  return added;
}

void Arena::free(std::size_t offset, const Users& users) {
  auto range = ranges_.find(offset);
  SHARDWRIGHT_CHECK(range != ranges_.end() && !range->second.free, "no block of the arena");
  range->second.free = true;
  range->second.users = users;
  const auto join = [this](Ranges::iterator first, Ranges::iterator second) {
    first->second.bytes += second->second.bytes;
    add_users(first->second.users, second->second.users);
    ranges_.erase(second);
  };
  const auto next = std::next(range);
  if (next != ranges_.end() && next->second.free) join(range, next);
  if (range == ranges_.begin()) return;
  const auto before = std::prev(range);
  if (before->second.free) join(before, range);
}

}  // namespace shardwright::executor
