// Pareto fronts: the plans that no other plan beats in both of two figures.
#pragma once

#include <cstddef>
#include <vector>

namespace shardwright::planner {

// A point of two figures, both better when lower.
struct TradeOff {
  double first = 0.0;
  double second = 0.0;
};

// Returns the indices of the points that no other point equals or beats in both figures (of equal
// points, the first stays), in ascending order of `first`.
std::vector<std::size_t> pareto_front(const std::vector<TradeOff>& points);

}  // namespace shardwright::planner
