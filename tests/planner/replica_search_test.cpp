// Plans whose replicas lie on several pools, against every placement and every share of the batch.
#include "planner/replica_search.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "core/spec/plan_json.hpp"
#include "core/spec/pools.hpp"
#include "planner/layer_cost_cache.hpp"
#include "planner/pool_search.hpp"
#include "sim/step/analytic.hpp"
#include "tests/faster_accelerator.hpp"
#include "tests/planner/sample_share.hpp"
#include "tests/planner/small_pools.hpp"

namespace shardwright::planner {
namespace {

ReplicaSearch replicas_of(const PlanRequest& request, std::int64_t whole_space = kWholeSpace) {
  PoolLayerCosts costs;
  for (const std::string& pool : names_of_pools(request.cluster))
    costs[pool] = std::make_shared<LayerCostCache>();
  return search_replicas(request, costs, whole_space);
}

// The shortest step by the analytic level of all plans with replicas on both pools that obey the
// rules and fit.
double shortest_of_all(const PlanRequest& request) {
  double best = std::numeric_limits<double>::infinity();
  SearchLimits limits = request.limits;
  limits.rank_orders = {pipeline_inside_data()};
  const auto look_at = [&](const Plan& plan) {
    // The search leaves each group of experts on one pool.
    if (spreads_experts(plan)) return;
    if (first_broken_rule(request.model, request.cluster, plan, 0, &request.stack)) return;
    if (!broken_constraint(request.constraints, plan).empty()) return;
    const double step =
        sim::estimate_step({request.model, request.cluster, request.stack, plan}).analytic.value();
    if (step < best && fits(request, plan)) best = step;
  };
  const std::string first = request.cluster.name, second = request.cluster.pools[0].name;
  for (std::int64_t gpus = 2; gpus <= request.gpus; ++gpus) {
    const SpaceRequest space{
        request.model,   request.cluster,   request.stack, gpus,  request.global_batch,
        request.seq_len, request.precision, request.lora,  limits};
    for (Plan plan : enumerate_plans(space)) {
      for (std::int64_t replicas = 1; replicas < plan.dp; ++replicas) {
        for (std::int64_t m = 1; m <= request.global_batch; ++m) {
          for (std::int64_t n = 1; n <= request.global_batch; ++n) {
            plan.replica_pools = {{first, replicas, m}, {second, plan.dp - replicas, n}};
            if (batch_of_pools(plan) == request.global_batch) look_at(plan);
          }
        }
      }
    }
  }
  return best;
}

TEST(ReplicaSearch, EqualsEveryPlacementAndShareOnRandomSmallJobs) {
  constexpr int kJobs = 200 / kSampleShare;
  std::mt19937 random(20261207);
  int with_plans = 0, jobs = 0, uneven = 0;
  for (; with_plans < kJobs && jobs < 20 * kJobs; ++jobs) {
    PlanRequest request = small_job(random, jobs % 4 == 0);
    const double oracle = shortest_of_all(request);
    const ReplicaSearch found = replicas_of(request);
    const std::string job = request.model.name + " job " + std::to_string(jobs);
    ASSERT_TRUE(found.all) << job;
    ASSERT_EQ(found.plans.empty(), !std::isfinite(oracle)) << job;
    if (found.plans.empty()) continue;
    ++with_plans;
    const auto& [look, plan] = found.plans.front();
    ASSERT_NEAR(look.analytic.value() / oracle, 1.0, 1e-12) << job << " " << to_json(plan).dump();
    ASSERT_FALSE(first_broken_rule(request.model, request.cluster, plan)) << job;
    ASSERT_TRUE(fits(request, plan)) << job;
    uneven += plan.replica_pools[0].microbatches != plan.replica_pools[1].microbatches;
  }
  RecordProperty("jobs", jobs);
  RecordProperty("uneven", uneven);
  EXPECT_EQ(with_plans, kJobs);
  EXPECT_GT(uneven, kJobs / 10);
}

// The part of a large space that is evaluated has plans near the best of the whole space.
TEST(ReplicaSearch, APartOfASpaceIsNearlyAsGoodAsTheWhole) {
  std::mt19937 random(20261208);
  int compared = 0, near = 0;
  for (int job = 0; job < 400 / kSampleShare; ++job) {
    const PlanRequest request = small_job(random, false);
    const ReplicaSearch whole = replicas_of(request), part = replicas_of(request, 0);
    if (whole.plans.empty()) continue;
    ++compared;
    if (part.plans.empty()) continue;
    const Seconds best = whole.plans.front().look.analytic,
                  found = part.plans.front().look.analytic;
    EXPECT_GE(found, best * (1.0 - 1e-12));
    near += found <= best * 1.05;
  }
  RecordProperty("compared", compared);
  RecordProperty("near", near);
  if (!kSanitized) {
    EXPECT_GE(near * 100, compared * 55);
  }
}

// Data parallelism between nodes of which some compute twice as fast: these get so many more
// microbatches that neither half of the replicas stands still for long, and the plan beats those of
// the fast nodes alone.
TEST(ReplicaSearch, GivesFasterPoolsALargerShare) {
  PlanRequest request = request_for("llama3-8b", 32, 96, 2048);
  request.cluster.nodes = 2;
  request.cluster.pools = {pool_of(request.cluster, "second")};
  double_speed(request.cluster.pools[0].accelerator);
  request.takes_pools = true;
  fix(request, {"pp=1", "tp=8", "cp=1", "zero_stage=1", "micro_batch=1", "recompute=none"});
  adapt_limits(request);
  const SearchResult result = search(request);
  ASSERT_FALSE(result.plans.empty());
  const Plan& best = result.plans.front().plan;
  ASSERT_EQ(best.replica_pools.size(), 2U) << to_json(best).dump();
  EXPECT_GT(best.replica_pools[1].microbatches, best.replica_pools[0].microbatches * 4 / 3);
  const sim::StepResult& step = result.plans.front().result;
  for (const sim::StageResult& stage : step.stages) EXPECT_LT(stage.time.stall, step.step * 0.05);
  EXPECT_GT(result.placed->replica_placements, 0);
  request.places_replicas = false;
  const SearchResult without = search(request);
  EXPECT_LT(result.plans.front().score, 0.8 * without.plans.front().score);
}

}  // namespace
}  // namespace shardwright::planner
