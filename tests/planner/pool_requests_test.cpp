// What requests on several pools may leave open or ask for besides: the batch, plans that published
// runs cover, a plan to compare with, sizes, and what is left of the pools.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "planner/batch_knee.hpp"
#include "planner/pool_counts.hpp"
#include "planner/pool_search.hpp"
#include "planner/replan.hpp"
#include "planner/scale.hpp"
#include "planner/sweep.hpp"
#include "sim/step/analytic.hpp"
#include "tests/planner/small_pools.hpp"
#include "tests/sanitized.hpp"
#include "tests/thrown.hpp"

namespace shardwright::planner {
namespace {

// Fewer jobs would leave the counts of those that have plans to chance.
constexpr int kPoolJobs = kSanitized ? 12 : 40;

double tokens_per_s(const SearchResult& result) {
  if (result.plans.empty()) return 0.0;
  const PlanCandidate& best = result.plans.front();
  return best.tokens() / best.result.step.value();
}

TEST(PoolRequests, TheOpenBatchIsTheSmallestWithNearlyTheBestRate) {
  std::mt19937 random(20261210);
  int open = 0;
  for (int job = 0; job < kPoolJobs; ++job) {
    PlanRequest request = small_job(random, job % 4 == 0);
    request.global_batch = 0;
    request.max_global_batch = 12;
    const SearchResult chosen = search(request);
    std::map<std::int64_t, double> rates;
    for (const std::int64_t batch : even_batches(12.0, request)) {
      request.global_batch = batch;
      rates[batch] = tokens_per_s(search(request));
    }
    double best = 0.0;
    for (const auto& [batch, rate] : rates) best = std::max(best, rate);
    ASSERT_EQ(chosen.plans.empty(), best == 0.0) << job;
    if (chosen.plans.empty()) continue;
    ++open;
    const auto knee = std::ranges::find_if(
        rates, [&](const auto& each) { return each.second >= kKneeThroughput * best; });
    EXPECT_EQ(chosen.plans.front().plan.global_batch, knee->first) << job;
    EXPECT_EQ(tokens_per_s(chosen), knee->second) << job;
  }
  EXPECT_GT(open, kPoolJobs / 2);
}

// Three accelerators of the second pool divide a batch of 6 that the powers of two leave out.
TEST(PoolRequests, BatchesDivideAmongTheReplicasOfEachPool) {
  std::mt19937 random(20261211);
  PlanRequest request = small_job(random, true);
  shrink(request.cluster, 1, 1);
  request.cluster.pools[0].nodes = 3;
  request.cluster.pools[0].node = request.cluster.node;
  request.gpus = 4;
  EXPECT_THAT(even_batches(8.0, request), testing::ElementsAre(1, 2, 3, 4, 6, 8));
}

// Of plans on one pool those that a function of the pool covers are asked for; on several, none.
TEST(PoolRequests, TrustedPlansLieOnOnePoolAndAreTheBestThere) {
  std::mt19937 random(20261212);
  int trusted = 0, doubted = 0;
  for (int job = 0; job < kPoolJobs; ++job) {
    PlanRequest request = small_job(random, false);
    request.validated_on = [](const ClusterSpec& pool) {
      const bool second = pool.name == "second";
      return [second](const Plan& plan) { return second || plan.tp > 1; };
    };
    const SearchResult all = search(request);
    request.validated_only = true;
    const SearchResult only = search(request);
    EXPECT_FALSE(only.placed.has_value());
    for (const PlanCandidate& each : only.plans) {
      ASSERT_EQ(pools_of(each.plan).size(), 1U) << job;
      EXPECT_TRUE(each.plan.stage_pools.front() == "second" || each.plan.tp > 1) << job;
      EXPECT_TRUE(each.validated) << job;
    }
    if (all.plans.empty()) continue;
    const PlanCandidate& first = all.plans.front();
    EXPECT_EQ(all.best_validated.has_value(), !first.validated && !only.plans.empty()) << job;
    if (only.plans.empty()) continue;
    ++trusted;
    const PlanCandidate& best = first.validated ? first : *all.best_validated;
    EXPECT_EQ(best.score, only.plans.front().score) << job;
    doubted += !first.validated;
  }
  EXPECT_GT(trusted, kPoolJobs / 4);
  EXPECT_GT(doubted, 0);
}

// The times of all plans that obey the rules and fit, by the analytic level: those of each pool
// alone, and those of each placement with each split.
std::vector<double> times_of_all(const PlanRequest& request) {
  std::vector<double> times;
  for (const std::string& pool : names_of_pools(request.cluster)) {
    const PlanRequest own = request_on_pool(request, pool);
    const auto never = [](const Evaluation&) { return false; };
    for (const EvaluatedPlan& plan : evaluate_space(own, layer_cuts(space_of(own)), never).plans)
      times.push_back(plan.analytic);
  }
  const PlacementLimits limits{request.gpus, request.limits.max_pp};
  const auto placements = all_placements(request.cluster, limits, 1000);
  for (const Placement& placement : *placements) {
    PlanRequest there = request;
    there.limits.layer_splits = {LayerSplit::FrontHeavy};
    there.gpus = placement.world_size();
    for (Plan plan : enumerate_plans(space_of(there))) {
      if (plan.pp != placement.stages()) continue;
      plan.stage_pools = placement.stage_pools;
      for_each_split(request.model.layers, plan.chunks(), [&](const auto& layers) {
        plan.stage_layers = layers;
        const bool obeys =
            !first_broken_rule(request.model, request.cluster, plan, 0, &request.stack) &&
            broken_constraint(request.constraints, plan).empty();
        if (obeys && fits(request, plan))
          times.push_back(sim::estimate_step({request.model, request.cluster, request.stack, plan})
                              .analytic.value());
      });
    }
  }
  return times;
}

TEST(PoolRequests, ComparedPlansAreRankedAmongAllPlansOfEachPoolAndOfSeveral) {
  std::mt19937 random(20261213);
  int compared = 0;
  for (int job = 0; job < kPoolJobs / 2; ++job) {
    PlanRequest request = small_job(random, false);
    request.places_replicas = false;
    const SearchResult result = search(request);
    if (result.plans.empty() || !result.placed->all_splits) continue;
    ++compared;
    const std::vector<double> times = times_of_all(request);
    EXPECT_EQ(std::ssize(times), result.counts.evaluated) << job;
    const PlanCandidate& plan = pick(random, result.plans);
    request.compared = plan.plan;
    // Equal times differ by rounding.
    const auto faster_than = [&](double seconds) {
      return std::ranges::count_if(times, [&](double time) { return time < seconds; });
    };
    const std::int64_t faster = *search(request).faster_than_compared;
    EXPECT_GE(faster, faster_than(plan.analytic.value() * (1.0 - 1e-9))) << job;
    EXPECT_LE(faster, faster_than(plan.analytic.value() * (1.0 + 1e-9))) << job;
  }
  EXPECT_GT(compared, kPoolJobs / 4);
}

TEST(PoolRequests, AFurtherPoolNeverMakesTheBestPlanWorse) {
  std::mt19937 random(20261214);
  int better = 0, compared = 0;
  // Among few jobs it may be that the third pool improves none.
  for (int job = 0; job < kPoolJobs || (better == 0 && job < 40); ++job) {
    PlanRequest request = small_job(random, false);
    request.gpus = accelerators_of(request.cluster);
    const SearchResult two = search(request);
    const auto placed_on_two = best_placed(request);
    ClusterSpec third = load_cluster("dgx-a100");
    shrink(third, 1, 1);
    request.cluster.pools.push_back(pool_of(third, "third"));
    ++request.gpus;
    const SearchResult three = search(request);
    ASSERT_TRUE(two.plans.empty() || !three.plans.empty()) << job;
    if (two.plans.empty() || !three.placed->all_splits) continue;
    ++compared;
    EXPECT_LE(three.plans.front().score, two.plans.front().score) << job;
    better += three.plans.front().score < two.plans.front().score;
    if (placed_on_two) {
      EXPECT_LE(best_placed(request)->score, placed_on_two->score * (1.0 + 1e-12)) << job;
    }
  }
  EXPECT_GT(compared, kPoolJobs / 2);
  EXPECT_GT(better, 0);
}

TEST(PoolRequests, SizesAreThoseOfSearches) {
  std::mt19937 random(20261215);
  for (int job = 0; job < kPoolJobs / 2; ++job) {
    PlanRequest request = small_job(random, job % 4 == 0);
    std::vector<std::int64_t> sizes;
    for (std::int64_t gpus = 1; gpus <= accelerators_of(request.cluster); ++gpus)
      sizes.push_back(gpus);
    const ScaleResult scaled = scale(request, sizes);
    const auto machine = [&](std::int64_t gpus) { return grown_to(request.cluster, "", gpus); };
    const std::int64_t twice = 2 * accelerators_of(request.cluster);
    const ScaleResult grown = scale(request, {twice}, {}, machine);
    for (const ScaleResult* result : {&scaled, &grown}) {
      for (const ScalePoint& point : result->points) {
        PlanRequest alone = request;
        alone.gpus = point.gpus;
        alone.cluster = point.cluster;
        const SearchResult found = search(alone);
        ASSERT_EQ(point.best.has_value(), !found.plans.empty()) << job;
        if (!point.best) continue;
        EXPECT_EQ(point.best->score, found.plans.front().score) << job;
      }
    }
    EXPECT_EQ(accelerators_of(grown.points.front().cluster), twice);
  }
}

// With equal pools a sweep is that of one pool, to the last digit; a stage that is too large for
// its own pool does not fit.
TEST(PoolRequests, SweepsHoldEachStageAgainstItsOwnPool) {
  Plan plan;
  plan.dp = 8;
  plan.pp = 2;
  plan.global_batch = 16;
  plan.seq_len = 2048;
  SweepRequest one{SweepAxis::GlobalBatch,
                   SweepPlan::Chosen,
                   {8.0, 16.0, 32.0},
                   {},
                   scenario_of("llama3.2-1b", "megatron-core", plan)};
  SweepRequest pools = one;
  ClusterSpec& cluster = pools.scenario.cluster;
  cluster.pools = {pool_of(cluster, "second")};
  pools.scenario.plan.stage_pools = {cluster.name, "second"};
  for (const SweepAxis axis : {SweepAxis::GlobalBatch, SweepAxis::ScaleOutBandwidth}) {
    one.axis = pools.axis = axis;
    const Sweep expected = run_sweep(one), found = run_sweep(pools);
    ASSERT_EQ(found.points.size(), expected.points.size());
    for (std::size_t i = 0; i < found.points.size(); ++i) {
      ASSERT_TRUE(found.points[i].candidate.has_value());
      EXPECT_EQ(found.points[i].candidate->result.step, expected.points[i].candidate->result.step);
      EXPECT_TRUE(found.points[i].fits);
    }
    EXPECT_EQ(found.knee, expected.knee);
  }
  cluster.pools[0].accelerator.memory = gigabytes(1.0);
  for (const SweepPoint& point : run_sweep(pools).points) EXPECT_FALSE(point.fits);
}

// Where the shares do not divide a batch, the sweep says which batch the plan runs.
TEST(PoolRequests, ASweepOfBatchesKeepsTheSharesOfReplicas) {
  Plan plan;
  plan.dp = 2;
  plan.tp = 8;
  plan.seq_len = 2048;
  SweepRequest request{SweepAxis::GlobalBatch,
                       SweepPlan::Chosen,
                       {6.0, 8.0, 12.0, 24.0},
                       {},
                       scenario_of("llama3.2-1b", "megatron-core", plan)};
  ClusterSpec& cluster = request.scenario.cluster;
  cluster.pools = {pool_of(cluster, "second")};
  request.scenario.plan.replica_pools = {{cluster.name, 1, 4}, {"second", 1, 8}};
  request.scenario.plan.global_batch = 12;
  const Sweep sweep = run_sweep(request);
  ASSERT_EQ(sweep.points.size(), 4U);
  for (const SweepPoint& point : sweep.points) {
    EXPECT_EQ(point.candidate.has_value(), point.value != 8.0);
    if (!point.candidate) {
      EXPECT_EQ(point.broken_rule->where, "/global_batch");
      continue;
    }
    const std::vector<PoolReplicas>& parts = point.candidate->plan.replica_pools;
    EXPECT_EQ(parts[1].microbatches, 2 * parts[0].microbatches);
    EXPECT_EQ(batch_of_pools(point.candidate->plan), static_cast<std::int64_t>(point.value));
  }
}

ClusterSpec new_and_old(std::int64_t new_nodes, std::int64_t old_nodes) {
  ClusterSpec cluster = load_cluster("dgx-h100");
  cluster.name = "new";
  cluster.nodes = new_nodes;
  cluster.pools = {pool_of(load_cluster("dgx-a100"), "old")};
  cluster.pools[0].nodes = old_nodes;
  return cluster;
}

std::int64_t nodes_of_pool(const ClusterSpec& cluster, const std::string& pool) {
  const auto alone = pool_cluster(cluster, pool);
  return alone ? alone->nodes : 0;
}

TEST(PoolCounts, FleetsGrowInProportionAndNoPoolOfALargerOneIsSmaller) {
  const ClusterSpec cluster = new_and_old(3, 2);
  std::int64_t of_new = 0, of_old = 0;
  for (std::int64_t gpus = 8; gpus <= 400; ++gpus) {
    const ClusterSpec fleet = grown_to(cluster, "", gpus);
    const std::int64_t news = nodes_of_pool(fleet, "new"), olds = nodes_of_pool(fleet, "old");
    EXPECT_EQ(8 * (news + olds), gpus / 8 * 8);
    EXPECT_GE(news, of_new);
    EXPECT_GE(olds, of_old);
    of_new = news;
    of_old = olds;
    EXPECT_LE(std::abs(5 * news - 3 * (news + olds)), 5) << "within a node of its share";
  }
  EXPECT_EQ(grown_to(cluster, "", 40), cluster);
  EXPECT_TRUE(grown_to(cluster, "", 8).pools.empty());
}

TEST(PoolCounts, OnePoolMayGrowAlone) {
  const ClusterSpec cluster = new_and_old(3, 2);
  EXPECT_EQ(grown_to(cluster, "old", 40), cluster);
  const ClusterSpec fleet = grown_to(cluster, "old", 95);
  EXPECT_EQ(nodes_of_pool(fleet, "new"), 3);
  EXPECT_EQ(nodes_of_pool(fleet, "old"), 8);
  EXPECT_TRUE(grown_to(cluster, "old", 24).pools.empty());
  const auto refused = [](const ClusterSpec& grown, const std::string& pool, std::int64_t gpus) {
    return thrown_by([&] { grown_to(grown, pool, gpus); });
  };
  EXPECT_THAT(refused(cluster, "old", 23), testing::HasSubstr("at least the 24"));
  EXPECT_THAT(refused(cluster, "", 7), testing::HasSubstr("at least the 8 of the first node"));
  EXPECT_THAT(refused(cluster, "odl", 40), testing::HasSubstr("old"));
  EXPECT_THAT(refused(new_and_old(0, 2), "", 40), testing::HasSubstr("in the pool new"));
  EXPECT_EQ(nodes_of_pool(grown_to(new_and_old(0, 2), "new", 40), "new"), 3);
}

TEST(PoolCounts, WholeNodesAreLeft) {
  const ClusterSpec cluster = new_and_old(3, 2);
  EXPECT_EQ(left_of(cluster, {{"new", 24}, {"old", 16}}), cluster);
  const ClusterSpec left = left_of(cluster, {{"new", 23}, {"old", 3}});
  EXPECT_EQ(nodes_of_pool(left, "new"), 2);
  EXPECT_EQ(accelerators_of(left), 19);
  const ClusterSpec old = left_of(cluster, {{"old", 16}});
  EXPECT_EQ(old.name, "old");
  EXPECT_TRUE(old.pools.empty());
  const auto refused = [&](const std::map<std::string, std::int64_t>& ranks) {
    return thrown_by([&] { left_of(cluster, ranks); });
  };
  EXPECT_THAT(refused({{"new", 25}}), testing::HasSubstr("at most the 24"));
  EXPECT_THAT(refused({{"nwe", 1}}), testing::HasSubstr("new"));
  EXPECT_THAT(refused({}), testing::HasSubstr("at least 1"));
}

// A run on two pools that lost one of them goes on as on the other alone; on all that is left, no
// plan of one pool is better.
TEST(Replan, TakesWhatIsLeftOfEachPool) {
  Plan plan;
  plan.dp = 8;
  plan.pp = 2;
  plan.global_batch = 64;
  plan.seq_len = 1024;
  Scenario before = scenario_of("llama3.2-1b", "shardwright", plan);
  before.cluster = new_and_old(1, 1);
  before.plan.stage_pools = {"new", "old"};
  Scenario left = before;
  left.cluster = left_of(before.cluster, {{"old", 8}});
  left.plan.stage_pools.clear();
  Scenario alone = left;
  alone.cluster = *pool_cluster(before.cluster, "old");
  const auto on_old = replan(left, 8);
  ASSERT_TRUE(on_old);
  EXPECT_EQ(on_old->candidate.plan, replan(alone, 8)->candidate.plan);
  left.cluster = left_of(before.cluster, {{"new", 4}, {"old", 8}});
  const auto on_both = replan(left, accelerators_of(left.cluster));
  ASSERT_TRUE(on_both);
  EXPECT_LE(on_both->candidate.result.step, on_old->candidate.result.step);
  EXPECT_LE(on_both->scenario.plan.world_size(), 12);
  // Readable as a plan file, so it keeps the rules.
  const Scenario read = read_scenario(to_json(on_both->scenario), "replanned");
  EXPECT_EQ(read.plan, on_both->scenario.plan);
}

}  // namespace
}  // namespace shardwright::planner
