// Scaling shares work between sizes; each size must get the answer of a search of its own.
#include "planner/scale.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/planner/shipped_requests.hpp"

namespace shardwright::planner {
namespace {

PlanRequest mixtral() {
  PlanRequest request = request_for("mixtral-8x7b", 1, 64, 4096);
  request.limits.max_micro_batch = 2;
  request.limits.rank_orders = {Plan().rank_order, pipeline_inside_data()};
  return request;
}

TEST(Scale, AnswersAsSearchesOfEachSizeDo) {
  PlanRequest request = mixtral();
  const ScaleResult together = scale(request, {4, 8, 12, 16, 32});
  ASSERT_EQ(together.points.size(), 5U);
  for (const ScalePoint& point : together.points) {
    request.gpus = point.gpus;
    request.top = 1;
    const SearchResult alone = search(request);
    EXPECT_EQ(point.counts.space, alone.counts.space);
    EXPECT_EQ(point.counts.evaluated, alone.counts.evaluated);
    ASSERT_EQ(point.best.has_value(), !alone.plans.empty()) << point.gpus;
    if (!point.best) continue;
    EXPECT_EQ(point.best->plan, alone.plans.front().plan);
    EXPECT_EQ(point.best->result.step, alone.plans.front().result.step);
  }
}

TEST(Scale, ExplainsEfficienciesAboveOneHundredPercentAndOnlyThose) {
  PlanRequest request = mixtral();
  request.limits.rank_orders = {Plan().rank_order};
  for (const double memory : {80.0, 60.0, 45.0}) {
    request.max_memory = gigabytes(memory);
    const ScaleResult result = scale(request, {8, 16, 32, 64});
    double best = 0.0;
    for (const ScalePoint& point : result.points) best = std::max(best, point.efficiency);
    EXPECT_EQ(best > 1.005, result.superlinear_cause.has_value()) << memory;
    if (result.superlinear_cause) {
      EXPECT_EQ(result.superlinear_cause->best_efficiency, best);
    }
  }
}

TEST(Scale, TriesPowersOfTwoAndBothEnds) {
  EXPECT_EQ(machine_sizes(8, 64), (std::vector<std::int64_t>{8, 16, 32, 64}));
  EXPECT_EQ(machine_sizes(6, 20), (std::vector<std::int64_t>{6, 8, 16, 20}));
  EXPECT_EQ(machine_sizes(8, 8), (std::vector<std::int64_t>{8}));
}

TEST(Scale, EfficiencyIsThatOfTheSmallestSizeThatFits) {
  const ScaleResult result = scale(request_for("llama3-8b", 1, 64, 8192), {1, 8, 64});
  ASSERT_EQ(result.points.size(), 3U);
  EXPECT_FALSE(result.points[0].best.has_value());  // 16 bytes a parameter do not fit one H100
  ASSERT_TRUE(result.points[1].best && result.points[2].best);
  EXPECT_DOUBLE_EQ(result.points[1].efficiency, 1.0);
  EXPECT_LT(result.points[2].efficiency, 1.0);
  EXPECT_TRUE(result.points[2].on_front);
}

TEST(Scale, SaysWhatIsMissingWhereNoSizeHasAPlan) {
  PlanRequest request = mixtral();
  request.max_memory = gigabytes(8.0);
  const ScaleResult result = scale(request, {2, 4});
  ASSERT_TRUE(result.infeasible.has_value());
  EXPECT_GT(result.infeasible->shortfall, Bytes());
  EXPECT_FALSE(result.infeasible->closes_it.empty());
}

}  // namespace
}  // namespace shardwright::planner
