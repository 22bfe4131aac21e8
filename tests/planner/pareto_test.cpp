#include "planner/pareto.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

namespace shardwright::planner {
namespace {

bool beats(const TradeOff& a, const TradeOff& b) {
  return a.first <= b.first && a.second <= b.second && (a.first < b.first || a.second < b.second);
}

// By the definition: a point is on the front exactly if no other beats it.
TEST(Pareto, KeepsExactlyThePointsThatNoneBeats) {
  EXPECT_TRUE(rc::check([](const std::vector<std::pair<std::uint8_t, std::uint8_t>>& numbers) {
    std::vector<TradeOff> points;
    for (const auto& [first, second] : numbers)
      points.push_back({static_cast<double>(first % 16), static_cast<double>(second % 16)});
    const std::vector<std::size_t> front = pareto_front(points);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const bool beaten = std::any_of(points.begin(), points.end(), [&](const TradeOff& other) {
        return beats(other, points[i]);
      });
      const bool represented = std::any_of(front.begin(), front.end(), [&](std::size_t on) {
        return points[on].first == points[i].first && points[on].second == points[i].second;
      });
      RC_ASSERT(represented != beaten);
    }
    for (std::size_t i = 1; i < front.size(); ++i)
      RC_ASSERT(points[front[i - 1]].first < points[front[i]].first);
  }));
}

}  // namespace
}  // namespace shardwright::planner
