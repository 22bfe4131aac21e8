#include "planner/pareto.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace shardwright::planner {

std::vector<std::size_t> pareto_front(const std::vector<TradeOff>& points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (points[a].first != points[b].first) return points[a].first < points[b].first;
    return points[a].second < points[b].second;
  });
  std::vector<std::size_t> front;
  double lowest = std::numeric_limits<double>::infinity();
  for (const std::size_t index : order) {
    if (points[index].second >= lowest) continue;
    lowest = points[index].second;
    front.push_back(index);
  }
  return front;
}

}  // namespace shardwright::planner
