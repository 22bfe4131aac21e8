// Numbers distinct routes in the order in which they first appear.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/network/link.hpp"

namespace shardwright::sim {

// A hash table over flat arrays; the spans that it is given must outlive it.
class RouteTable {
 public:
  // Room for that many distinct routes.
  explicit RouteTable(std::size_t most_routes);

  // The number of the route, and whether it is a new one.
  std::pair<std::uint32_t, bool> find_or_add(std::span<const LinkIndex> route);

 private:
  static std::uint64_t hash(std::span<const LinkIndex> route);

  // The number of a route + 1; 0 if the cell is free.
  std::vector<std::uint32_t> cells_;
  std::vector<std::span<const LinkIndex>> routes_;
};

}  // namespace shardwright::sim
