#include "sim/network/route_table.hpp"

#include <algorithm>
#include <bit>

namespace shardwright::sim {

RouteTable::RouteTable(std::size_t most_routes) : cells_(std::bit_ceil(2 * most_routes + 1), 0) {}

std::pair<std::uint32_t, bool> RouteTable::find_or_add(std::span<const LinkIndex> route) {
  const std::size_t mask = cells_.size() - 1;
  for (std::size_t cell = hash(route) & mask;; cell = (cell + 1) & mask) {
    if (cells_[cell] == 0) {
      routes_.push_back(route);
      cells_[cell] = static_cast<std::uint32_t>(routes_.size());
      return {cells_[cell] - 1, true};
    }
    const auto known = routes_[cells_[cell] - 1];
    if (std::equal(known.begin(), known.end(), route.begin(), route.end()))
      return {cells_[cell] - 1, false};
  }
}

// Multiply and fold, with the multiplier of a 64-bit linear congruential generator (Knuth, MMIX).
std::uint64_t RouteTable::hash(std::span<const LinkIndex> route) {
  std::uint64_t value = route.size();
  for (const LinkIndex link : route) {
    value = (value ^ link) * 6364136223846793005ULL;
    value ^= value >> 32;
  }
  return value;
}

}  // namespace shardwright::sim
