// Scaling shares work between sizes; each size must get the answer of a search of its own.
#include "planner/scale.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"

namespace shardwright::planner {
namespace {

PlanRequest mixtral() {
  PlanRequest request;
  request.model = load_model("mixtral-8x7b");
  request.cluster = load_cluster("dgx-h100");
  request.stack = load_stack("megatron-core");
  request.global_batch = 64;
  request.seq_len = 4096;
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
    EXPECT_EQ(best > 1.005, !result.superlinear_cause.empty()) << memory;
  }
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
