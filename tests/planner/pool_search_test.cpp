// Searches on clusters of several pools, against every placement and every split of the layers.
#include "planner/pool_search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "core/spec/plan_json.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/profile_library.hpp"
#include "planner/layer_cost_cache.hpp"
#include "planner/placements.hpp"
#include "planner/plan_evaluation.hpp"
#include "planner/request_check.hpp"
#include "sim/step/analytic.hpp"
#include "sim/step/simulate.hpp"
#include "tests/faster_accelerator.hpp"
#include "tests/planner/sample_share.hpp"
#include "tests/planner/small_pools.hpp"
#include "tests/thrown.hpp"

namespace shardwright::planner {
namespace {

// Calls `visit` for each assignment of stages to pools.
void for_each_assignment(const ClusterSpec& cluster, std::size_t stages,
                         std::vector<std::string>& pools, const std::function<void()>& visit) {
  if (pools.size() == stages) return visit();
  for (const std::string& name : names_of_pools(cluster)) {
    pools.push_back(name);
    for_each_assignment(cluster, stages, pools, visit);
    pools.pop_back();
  }
}

// Calls `visit` for all ways to write `sum` as so many numbers from 0 on.
void for_each_sum(std::int64_t sum, std::size_t count, std::vector<std::int64_t>& numbers,
                  const std::function<void()>& visit) {
  if (numbers.size() + 1 == count) {
    numbers.push_back(sum);
    visit();
    numbers.pop_back();
    return;
  }
  for (std::int64_t first = 0; first <= sum; ++first) {
    numbers.push_back(first);
    for_each_sum(sum - first, count, numbers, visit);
    numbers.pop_back();
  }
}

struct Oracle {
  double best = std::numeric_limits<double>::infinity();
  std::int64_t plans = 0;
};

// The shortest step by the analytic level of all plans on several pools that obey the rules and
// fit, on up to `request.gpus` accelerators. On equal pools every plan is one of a cluster of one
// pool.
Oracle try_all(const PlanRequest& request, bool equal) {
  Oracle oracle;
  SearchLimits limits = request.limits;
  limits.layer_splits = {LayerSplit::FrontHeavy};
  const auto look_at = [&](const Plan& plan) {
    if (pools_of(plan).size() < 2) return;
    if (first_broken_rule(request.model, request.cluster, plan, 0, &request.stack)) return;
    if (!broken_constraint(request.constraints, plan).empty()) return;
    Scenario scenario{request.model, request.cluster, request.stack, plan};
    if (equal) {
      scenario.cluster.pools.clear();
      scenario.cluster.nodes = 0;
      scenario.plan.stage_pools.clear();
    }
    ++oracle.plans;
    const double step = sim::estimate_step(scenario).analytic.value();
    if (step < oracle.best && fits(request, plan)) oracle.best = step;
  };
  for (std::int64_t gpus = 2; gpus <= request.gpus; ++gpus) {
    const SpaceRequest space{
        request.model,   request.cluster,   request.stack, gpus,  request.global_batch,
        request.seq_len, request.precision, request.lora,  limits};
    for (Plan plan : enumerate_plans(space)) {
      if (plan.pp == 1) continue;
      for_each_assignment(
          request.cluster, static_cast<std::size_t>(plan.pp), plan.stage_pools, [&] {
            if (pools_of(plan).size() < 2) return;
            for_each_sum(request.model.layers, static_cast<std::size_t>(plan.chunks()),
                         plan.stage_layers, [&] { look_at(plan); });
          });
    }
  }
  return oracle;
}

// The slowest of more accelerators is slower, where they differ.
TEST(LayerCostCache, KnowsTheNumberOfAccelerators) {
  const PlanRequest request = request_for("llama3-8b", 8, 64, 8192);
  ASSERT_GT(request.cluster.accelerator.speed_variation, 0.0);
  LayerCostCache cache;
  const auto time_on = [&](std::int64_t gpus, LayerCostCache& known) {
    Plan cut;
    cut.dp = gpus;
    cut.global_batch = gpus;
    cut.seq_len = 8192;
    const auto costs = known.of(request.model, request.cluster, request.stack, cut);
    return costs->kept.front().slot[SlotPhase::Forward].time;
  };
  for (const std::int64_t gpus : {8, 512, 64}) {
    LayerCostCache fresh;
    EXPECT_EQ(time_on(gpus, cache), time_on(gpus, fresh)) << gpus;
  }
  EXPECT_GT(time_on(512, cache), time_on(8, cache));
}

TEST(PoolSearch, EqualsEveryPlacementAndSplitOnRandomSmallJobs) {
  constexpr int kJobs = 200 / kSampleShare;
  std::mt19937 random(20261128);
  int with_plans = 0, jobs = 0;
  std::int64_t plans = 0;
  for (; with_plans < kJobs && jobs < 20 * kJobs; ++jobs) {
    const bool equal = jobs % 4 == 0;
    const PlanRequest request = small_job(random, equal);
    const Oracle oracle = try_all(request, equal);
    const std::optional<PlacedBest> best = best_placed(request);
    plans += oracle.plans;
    const std::string job = request.model.name + " " + request.cluster.name + " " +
                            request.stack.name + " job " + std::to_string(jobs);
    ASSERT_EQ(best.has_value(), std::isfinite(oracle.best)) << job;
    if (!best) continue;
    ++with_plans;
    ASSERT_NEAR(best->analytic.value() / oracle.best, 1.0, 1e-12)
        << job << " " << to_json(best->plan).dump();
    ASSERT_FALSE(first_broken_rule(request.model, request.cluster, best->plan)) << job;
    ASSERT_TRUE(fits(request, best->plan)) << job;
  }
  RecordProperty("jobs", jobs);
  RecordProperty("plans", std::to_string(plans));
  EXPECT_EQ(with_plans, kJobs);
}

// No plan with the same split whose stages recompute other numbers of layers both fits and is
// faster.
TEST(PoolSearch, StagesRecomputeNoMoreLayersThanTheyHaveTo) {
  std::mt19937 random(20261203);
  int differing = 0;
  for (int job = 0; job < 300 / kSampleShare; ++job) {
    PlanRequest request = small_job(random, false);
    request.limits.recompute = {RecomputePolicy::None, RecomputePolicy::Full};
    // Long sequences, and memory for the states and some of the activations.
    request.model = load_model("llama3.2-1b");
    request.model.layers = pick<std::int64_t>(random, {4, 6});
    request.seq_len = 8192;
    request.cluster.pools[0].accelerator.memory =
        gigabytes(pick<double>(random, {10.0, 12.0, 14.0, 16.0}));
    request.limits.recompute_by_stage = false;
    const std::optional<PlacedBest> uniform = best_placed(request);
    request.limits.recompute_by_stage = request.stack.capabilities.recompute_by_stage = true;
    const std::optional<PlacedBest> best = best_placed(request);
    ASSERT_EQ(best.has_value(), uniform.has_value()) << job;
    if (!best) continue;
    ASSERT_LE(best->analytic, uniform->analytic) << job;
    Plan plan = best->plan;
    if (plan.stage_recompute_layers.empty()) continue;
    ++differing;
    ASSERT_FALSE(first_broken_rule(request.model, request.cluster, plan, 0, &request.stack));
    ASSERT_TRUE(fits(request, plan)) << job;
    const std::int64_t most = *std::max_element(plan.stage_layers.begin(), plan.stage_layers.end());
    const auto count = static_cast<std::size_t>(plan.pp);
    plan.stage_recompute_layers.assign(count, 0);
    for (std::size_t stage = 0; stage < count;) {
      const auto step = sim::estimate_step(scenario_of(request, plan)).analytic;
      if (step < best->analytic * (1.0 - 1e-12)) {
        ASSERT_FALSE(fits(request, plan)) << job << " " << to_json(plan).dump();
      }
      for (stage = 0; stage < count && ++plan.stage_recompute_layers[stage] > most; ++stage)
        plan.stage_recompute_layers[stage] = 0;
    }
  }
  RecordProperty("differing", differing);
  EXPECT_GT(differing, 10 / kSampleShare);
}

TEST(PoolSearch, AFasterPoolNeverMakesTheBestPlanSlower) {
  std::mt19937 random(20261129);
  int faster = 0, compared = 0;
  for (int job = 0; job < 300 / kSampleShare; ++job) {
    PlanRequest request = small_job(random, false);
    const SearchResult slow = search(request);
    double_speed(request.cluster.pools[0].accelerator);
    const SearchResult fast = search(request);
    ASSERT_EQ(slow.plans.empty(), fast.plans.empty());
    if (slow.plans.empty()) continue;
    ++compared;
    // Kernels that end sooner may collide with other collectives.
    EXPECT_LE(fast.plans.front().result.step, slow.plans.front().result.step * 1.005) << job;
    faster += fast.plans.front().result.step < slow.plans.front().result.step * 0.99;
  }
  EXPECT_GT(faster, compared / 4);
}

TEST(PoolSearch, NoPlanIsBetterThanTheFirstAndEachPoolAloneIsARow) {
  std::mt19937 random(20261130);
  int on_several = 0, alone = 0;
  for (int job = 0; job < 200 / kSampleShare; ++job) {
    const bool equal = job % 4 == 0;
    PlanRequest request = small_job(random, equal);
    constexpr auto kObjectives = enumerators<Objective>();
    request.objective = pick<Objective>(random, {kObjectives.begin(), kObjectives.end()});
    if (request.objective == Objective::Cost) {
      request.cluster.price = DollarsPerSecond(pick<double>(random, {0.001, 0.002}));
      request.cluster.pools[0].price = DollarsPerSecond(0.001);
    }
    const SearchResult result = search(request);
    ASSERT_EQ(result.pools.size(), 2U);
    for (const PoolAlone& pool : result.pools) {
      PlanRequest own = request;
      own.cluster = *pool_cluster(request.cluster, pool.pool);
      own.gpus = pool.gpus;
      own.advice = false;
      const SearchResult expected = search(own);
      ASSERT_EQ(pool.best.has_value(), !expected.plans.empty()) << job;
      if (!pool.best) continue;
      EXPECT_EQ(pool.best->score, expected.plans.front().score) << job;
      ASSERT_FALSE(result.plans.empty());
      EXPECT_LE(result.plans.front().score, pool.best->score) << job;
    }
    if (result.placed->best) {
      EXPECT_LE(result.plans.front().score, result.placed->best->score) << job;
    }
    for (std::size_t i = 1; i < result.plans.size(); ++i)
      EXPECT_GE(result.plans[i].score, result.plans[i - 1].score) << job;
    for (const PlanCandidate& each : result.plans) {
      EXPECT_TRUE(fits(request, each.plan)) << job;
      EXPECT_EQ(sim::simulate_step(scenario_of(request, each.plan)).step, each.result.step);
      ++(pools_of(each.plan).size() > 1 ? on_several : alone);
      if (!equal) continue;
      Scenario one{request.model, request.cluster, request.stack, each.plan};
      one.cluster.pools.clear();
      one.plan.stage_pools.clear();
      one.plan.replica_pools.clear();
      // Replicas that run different numbers of microbatches are no plan of one pool.
      if (plan_of_part(each.plan, 0).global_batch != each.plan.global_batch) continue;
      EXPECT_NEAR(sim::simulate_step(one).step / each.result.step, 1.0, 1e-9) << job;
    }
  }
  EXPECT_GT(on_several, 20 / kSampleShare);
  EXPECT_GT(alone, 50 / kSampleShare);
}

// The part of a large space that is evaluated has plans near the best of the whole space.
TEST(PoolSearch, APartOfASpaceIsNearlyAsGoodAsTheWhole) {
  std::mt19937 random(20261201);
  int compared = 0, best = 0, near = 0;
  for (int job = 0; job < 600 / kSampleShare; ++job) {
    PlanRequest request = small_job(random, false);
    request.model.layers = pick<std::int64_t>(random, {6, 8, 10});
    const std::optional<PlacedBest> whole = best_placed(request);
    const std::optional<PlacedBest> part = best_placed(request, 0);
    if (!whole) {
      EXPECT_FALSE(part.has_value());
      continue;
    }
    ++compared;
    if (!part) continue;
    EXPECT_GE(part->analytic, whole->analytic * (1.0 - 1e-12));
    best += part->analytic <= whole->analytic * (1.0 + 1e-9);
    near += part->analytic <= whole->analytic * 1.05;
  }
  RecordProperty("compared", compared);
  RecordProperty("best", best);
  RecordProperty("near", near);
  // The share of a tenth of these jobs would be chance.
  if (!kSanitized) {
    EXPECT_GE(near * 100, compared * 75);
  }
}

TEST(PoolSearch, AnswersTheSameForAnyNumberOfThreads) {
  std::mt19937 random(20261202);
  for (int job = 0; job < 20; ++job) {
    PlanRequest request = small_job(random, false);
    request.threads = 1;
    const SearchResult one = search(request);
    request.threads = 3;
    const SearchResult three = search(request);
    ASSERT_EQ(one.plans.size(), three.plans.size());
    for (std::size_t i = 0; i < one.plans.size(); ++i) {
      EXPECT_EQ(one.plans[i].plan, three.plans[i].plan) << job;
      EXPECT_EQ(one.plans[i].score, three.plans[i].score) << job;
    }
    EXPECT_EQ(one.counts.simulated, three.counts.simulated);
  }
}

TEST(Placements, SplitsAreAsManyAsCounted) {
  for (std::int64_t layers = 0; layers <= 7; ++layers) {
    for (std::int64_t chunks = 1; chunks <= 10; ++chunks) {
      std::int64_t visited = 0;
      for_each_split(layers, chunks, [&](const std::vector<std::int64_t>& split) {
        EXPECT_EQ(std::accumulate(split.begin(), split.end(), std::int64_t{0}), layers);
        ++visited;
      });
      EXPECT_EQ(count_splits(layers, chunks), visited) << layers << " in " << chunks;
    }
  }
  EXPECT_EQ(count_splits(32, 32), 528);
  EXPECT_EQ(count_splits(32, 34), 1);
  EXPECT_EQ(count_splits(32, 36), 0);
}

// What a pool leaves because the next one begins at a node's end, the next one takes.
TEST(Placements, FullOnesLeaveNothingThatFits) {
  ClusterSpec cluster = load_cluster("dgx-h100");
  cluster.nodes = 3;
  cluster.pools = {pool_of(cluster, "second")};
  cluster.pools[0].nodes = 1;
  std::int64_t most = 0;
  for (const Placement& placement : full_placements(cluster, {20, 32}))
    if (placement.stage_ranks == 1) most = std::max(most, placement.stages());
  EXPECT_EQ(most, 20);
}

TEST(PoolSearch, SaysHowMuchOfTheSpaceItEvaluated) {
  std::mt19937 random(20261203);
  PlanRequest request = small_job(random, true);
  request.gpus = 2;
  shrink(request.cluster, 1, 1);
  request.cluster.pools[0].nodes = request.cluster.pools[0].node.accelerators = 1;
  const SearchResult small = search(request);
  EXPECT_TRUE(small.placed->all_placements && small.placed->all_splits);
  EXPECT_EQ(small.placed->placements, 2) << "both orders of a stage on each";
  request = request_for("llama3-8b", 64, 64, 8192);
  request.cluster.nodes = 4;
  request.cluster.pools = {pool_of(request.cluster, "second")};
  request.takes_pools = true;
  request.limits = narrow_limits();
  const SearchResult large = search(request);
  EXPECT_FALSE(large.placed->all_placements || large.placed->all_splits);
  ASSERT_FALSE(large.plans.empty());
  for (const PlanCandidate& each : large.plans) EXPECT_LE(each.plan.world_size(), 64);
}

TEST(PoolSearch, RefusesWhatIsNotKnownOfSeveralPools) {
  std::mt19937 random(20261204);
  PlanRequest request = small_job(random, true);
  const auto refused = [](const PlanRequest& each) {
    return thrown_by([&] { check_request(each); });
  };
  EXPECT_EQ(refused(request), "");
  PlanRequest other = request;
  other.takes_pools = false;
  EXPECT_THAT(refused(other), testing::HasSubstr("pools"));
  other = request;
  other.gpus = 1000;
  EXPECT_THAT(refused(other), testing::HasSubstr("accelerators of the pools"));
  other = request;
  other.objective = Objective::Cost;
  other.cluster.price = DollarsPerSecond(1.0);
  other.cluster.pools[0].price = other.cluster.pools[0].accelerator.price = DollarsPerSecond();
  EXPECT_THAT(refused(other), testing::HasSubstr("second has no price"));
}

}  // namespace
}  // namespace shardwright::planner
