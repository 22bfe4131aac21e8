#include "planner/rebalance.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "core/base/error.hpp"
#include "core/spec/pools.hpp"
#include "sim/step/simulate.hpp"
#include "tests/planner/shipped_requests.hpp"

namespace shardwright::planner {
namespace {

std::int64_t sum_of(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

std::vector<double> any_slowdowns(std::size_t count) {
  return *rc::gen::container<std::vector<double>>(
      count, rc::gen::element(1.0, 1.0, 1.3, 1.5, 2.0, 3.7, 10.0));
}

std::vector<std::int64_t> even_shares(std::size_t replicas, std::int64_t each) {
  return std::vector<std::int64_t>(replicas, each);
}

// All work is shared out, a slower replica never gets more than a faster one, and none finishes
// later than the slowest one of even shares.
RC_GTEST_PROP(SharesOfReplicas, FollowTheSpeeds, ()) {
  const auto replicas = *rc::gen::inRange<std::size_t>(1, 7);
  const auto each = *rc::gen::inRange<std::int64_t>(1, 20);
  const std::vector<double> slowdown = any_slowdowns(replicas);
  const auto total = static_cast<std::int64_t>(replicas) * each;
  const std::vector<std::int64_t> shares = shares_of_replicas(total, slowdown, 1);
  RC_ASSERT(shares.size() == replicas);
  RC_ASSERT(sum_of(shares) == total);
  const double most = *std::max_element(slowdown.begin(), slowdown.end());
  for (std::size_t i = 0; i < replicas; ++i) {
    RC_ASSERT(shares[i] >= 1);
    RC_ASSERT(static_cast<double>(shares[i]) * slowdown[i] <= static_cast<double>(each) * most);
    for (std::size_t j = 0; j < replicas; ++j)
      RC_ASSERT(slowdown[i] <= slowdown[j] || shares[i] <= shares[j]);
  }
  RC_ASSERT(shares_of_replicas(total, std::vector<double>(replicas, 2.0), 1) ==
            even_shares(replicas, each));
}

// No shares of two replicas have a slowest replica that takes less.
RC_GTEST_PROP(SharesOfReplicas, AreTheBestOfAll, ()) {
  const std::vector<double> slowdown = any_slowdowns(2);
  const auto total = *rc::gen::inRange<std::int64_t>(2, 40);
  const auto time = [&](std::int64_t first) {
    return std::max(static_cast<double>(first) * slowdown[0],
                    static_cast<double>(total - first) * slowdown[1]);
  };
  double best = time(1);
  for (std::int64_t first = 2; first < total; ++first) best = std::min(best, time(first));
  RC_ASSERT(time(shares_of_replicas(total, slowdown, 1).front()) == best);
}

TEST(SharesOfReplicas, AreWholeUnits) {
  EXPECT_EQ(shares_of_replicas(16, std::vector<double>{1.0, 3.0}, 4),
            (std::vector<std::int64_t>{12, 4}));
  EXPECT_TRUE(shares_of_replicas(14, std::vector<double>{1.0, 3.0}, 4).empty());
  EXPECT_TRUE(shares_of_replicas(4, std::vector<double>{1.0, 3.0}, 4).empty());
}

// No layer is lost, the slowest stage takes no longer than before, a stage that got layers has no
// more work than a faster one could take, and stages of equal speeds keep theirs.
RC_GTEST_PROP(MovedLayers, FollowTheSpeeds, ()) {
  const auto stages = *rc::gen::inRange<std::size_t>(2, 7);
  const auto layers =
      *rc::gen::container<std::vector<std::int64_t>>(stages, rc::gen::inRange<std::int64_t>(1, 12));
  const auto fixed =
      *rc::gen::container<std::vector<double>>(stages, rc::gen::element(0.0, 0.0, 0.5, 3.0));
  const std::vector<double> slowdown = any_slowdowns(stages);
  const std::vector<std::int64_t> moved = moved_layers(layers, fixed, slowdown);
  RC_ASSERT(sum_of(moved) == sum_of(layers));
  const auto work = [&](const std::vector<std::int64_t>& of, std::size_t stage) {
    return static_cast<double>(of[stage]) + fixed[stage];
  };
  double before = 0.0, after = 0.0;
  for (std::size_t i = 0; i < stages; ++i) {
    RC_ASSERT(moved[i] >= 1);
    before = std::max(before, slowdown[i] * work(layers, i));
    after = std::max(after, slowdown[i] * work(moved, i));
    for (std::size_t j = 0; j < stages; ++j) {
      if (slowdown[i] > slowdown[j] && moved[i] > layers[i])
        RC_ASSERT(work(moved, i) < work(moved, j) + 1.0);
    }
  }
  RC_ASSERT(after <= before);
  RC_ASSERT(moved_layers(layers, fixed, std::vector<double>(stages, 2.0)) == layers);
}

TEST(MovedLayers, SpareTheStageOfTheHead) {
  EXPECT_EQ(moved_layers({4, 4, 4, 4}, std::vector<double>{0.0, 0.0, 0.0, 3.0},
                         std::vector<double>{1.0, 3.0, 1.0, 1.0}),
            (std::vector<std::int64_t>{6, 2, 5, 3}));
}

Scenario replicas_on_a_node() {
  Plan plan;
  plan.dp = 4;
  plan.tp = 2;
  plan.global_batch = 32;
  plan.seq_len = 2048;
  return scenario_of("llama3.2-1b", "shardwright", plan);
}

Scenario stages_on_a_node() {
  Plan plan;
  plan.pp = 4;
  plan.global_batch = 16;
  plan.seq_len = 2048;
  return scenario_of("llama2-7b", "shardwright", plan);
}

std::vector<double> with_slow_rank(const Scenario& scenario, std::size_t rank, double slowdown) {
  std::vector<double> all(static_cast<std::size_t>(scenario.plan.world_size()), 1.0);
  all[rank] = slowdown;
  return all;
}

std::vector<std::int64_t> microbatches_of(const Plan& plan) {
  std::vector<std::int64_t> counts;
  for (std::int64_t replica = 0; replica < plan.dp; ++replica)
    counts.push_back(plan_of_part(plan, part_of_replica(plan, replica)).microbatches());
  return counts;
}

// The plan file can be read, so that the plan keeps all rules, and simulates as was promised.
void expect_good_file(const Rebalanced& found) {
  const Scenario read = read_scenario(to_json(found.scenario), "rebalanced");
  EXPECT_EQ(read.plan, found.scenario.plan);
  EXPECT_EQ(sim::simulate_step(read).step, found.after);
}

// The replica lies in the middle of a node.
TEST(Rebalance, TakesMicrobatchesFromASlowReplica) {
  const Scenario scenario = replicas_on_a_node();
  const auto found = rebalance(scenario, scenario.plan, with_slow_rank(scenario, 3, 2.0));
  ASSERT_TRUE(found);
  const Plan& plan = found->scenario.plan;
  EXPECT_EQ(microbatches_of(plan), (std::vector<std::int64_t>{10, 4, 9, 9}));
  EXPECT_EQ(plan.global_batch, scenario.plan.global_batch);
  expect_good_file(*found);
  EXPECT_GT(found->gain(), 0.3);
}

TEST(Rebalance, TakesLayersFromASlowStage) {
  const Scenario scenario = stages_on_a_node();
  const auto found = rebalance(scenario, scenario.plan, with_slow_rank(scenario, 1, 2.0));
  ASSERT_TRUE(found);
  const std::vector<std::int64_t>& layers = found->scenario.plan.stage_layers;
  ASSERT_EQ(layers.size(), 4U);
  EXPECT_EQ(sum_of(layers), scenario.model.layers);
  EXPECT_LT(layers[1], 8);
  expect_good_file(*found);
  EXPECT_GT(found->gain(), 0.2);
}

// Ranks that are equally fast again get the plan of the beginning, exactly.
TEST(Rebalance, GivesTheWorkBack) {
  for (const Scenario& scenario : {replicas_on_a_node(), stages_on_a_node()}) {
    const auto slow = rebalance(scenario, scenario.plan, with_slow_rank(scenario, 2, 2.0));
    ASSERT_TRUE(slow);
    const auto equal = rebalance(scenario, slow->scenario.plan, with_slow_rank(scenario, 2, 1.0));
    ASSERT_TRUE(equal);
    EXPECT_EQ(equal->scenario, scenario);
    EXPECT_GT(equal->gain(), kLeastRebalanceGain);
  }
}

// Nothing changes for ranks that are as fast as the plan takes them to be, or nearly.
TEST(Rebalance, KeepsAPlanThatAnotherHardlyBeats) {
  const Scenario scenario = replicas_on_a_node();
  EXPECT_FALSE(rebalance(scenario, scenario.plan, with_slow_rank(scenario, 0, 1.0)));
  EXPECT_FALSE(rebalance(scenario, scenario.plan, with_slow_rank(scenario, 0, 1.02)));
  const std::vector<double> slow = with_slow_rank(scenario, 5, 2.0);
  const auto found = rebalance(scenario, scenario.plan, slow);
  ASSERT_TRUE(found);
  EXPECT_FALSE(rebalance(scenario, found->scenario.plan, slow));
}

TEST(Rebalance, RefusesAPlanOfPoolsAndAnotherPlan) {
  const Scenario scenario = replicas_on_a_node();
  const auto slow = rebalance(scenario, scenario.plan, with_slow_rank(scenario, 3, 2.0));
  ASSERT_TRUE(slow);
  const std::vector<double> equal(8, 1.0);
  EXPECT_THROW(rebalance(slow->scenario, slow->scenario.plan, equal), InputError);
  Plan other = scenario.plan;
  other.zero_stage = 0;
  EXPECT_THROW(rebalance(scenario, other, equal), InputError);
}

}  // namespace
}  // namespace shardwright::planner
