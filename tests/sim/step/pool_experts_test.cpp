// Groups of experts that span replicas on several pools, with other numbers of experts on each.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "core/lowering/lowering.hpp"
#include "core/program/validate.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/step/analytic.hpp"
#include "sim/step/fidelity.hpp"
#include "sim/step/simulate.hpp"
#include "tests/faster_accelerator.hpp"
#include "tests/sim/step/random_scenario.hpp"

namespace shardwright::sim {
namespace {

using fixtures::one_of;
using fixtures::pool_like_first;
using fixtures::small_scenario;

bool is_sound_plan(const Scenario& scenario) {
  return !first_broken_rule(scenario.model, scenario.cluster, scenario.plan);
}

// Puts the last replicas of a random plan onto the second pool. Each rank holds as many of 16
// experts as the others where `even`, else those of one pool hold more. False if that breaks a
// rule.
bool put_experts_on_pools(bool even, Scenario& scenario) {
  Plan& plan = scenario.plan;
  plan = fixtures::any_small_plan(true);
  const std::int64_t first = one_of<std::int64_t>({1, 2}), each = plan.microbatches();
  if (first >= plan.dp || !spreads_experts(plan)) return false;
  plan.rank_order = {Axis::Tensor, Axis::Context, Axis::Expert, Axis::Pipeline, Axis::Data};
  if (any_flag())
    plan.rank_order = {Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data, Axis::Expert};
  NodeSpec& node = scenario.cluster.node;
  node.accelerators = node.scale_up.domain = plan.tp * plan.cp;
  scenario.cluster.pools = {pool_like_first(scenario.cluster)};
  const std::int64_t mean = 16 / plan.ep;
  std::int64_t own = mean;
  if (!even) own = one_of<std::int64_t>({1, 2, 3, 5, 6});
  if (even && any_flag()) own = 0;
  const std::int64_t other = own == 0 ? 0 : (mean * plan.dp - own * first) / (plan.dp - first);
  plan.replica_pools = {{scenario.cluster.name, first, each, {}, own},
                        {"second", plan.dp - first, each, {}, other}};
  return (even || own != other) && is_sound_plan(scenario);
}

Scenario any_experts_on_equal_pools(bool even) {
  Scenario scenario{fixtures::small_model(true, any_flag()),
                    load_cluster("dgx-h100"),
                    load_stack(one_of<std::string>({"megatron-core", "fsdp2"})),
                    {}};
  scenario.model.moe->experts = 16;
  // Where a failure is made smaller, no draw may do.
  int draws = 0;
  while (!put_experts_on_pools(even, scenario)) RC_PRE(++draws < 1000);
  return scenario;
}

Scenario without_pools(Scenario scenario) {
  scenario.cluster.pools.clear();
  scenario.plan.replica_pools.clear();
  return scenario;
}

RC_GTEST_PROP(PoolsOfExperts, WithEqualNumbersOnEqualPoolsAreAsOne, ()) {
  const Scenario scenario = any_experts_on_equal_pools(true), one = without_pools(scenario);
  const Fidelity fidelity = any_flag() ? Fidelity::Event : Fidelity::Full;
  const StepResult mixed = simulate_at(scenario, fidelity).result;
  const StepResult alone = simulate_at(one, fidelity).result;
  // A block that waits for other ranks is replayed op by op.
  RC_ASSERT(std::abs(mixed.step / alone.step - 1.0) < 1e-12);
  for (std::size_t stage = 0; stage < mixed.stages.size(); ++stage)
    RC_ASSERT(mixed.stages[stage].memory.peak ==
              alone.stages[stage % alone.stages.size()].memory.peak);
  RC_ASSERT(std::abs(mixed.throughput.hfu / alone.throughput.hfu - 1.0) < 1e-12);
  const StepEstimate closed = estimate_step(scenario), closed_one = estimate_step(one);
  RC_ASSERT(closed.analytic == closed_one.analytic);
  RC_ASSERT(closed.bound == closed_one.bound);
  RC_ASSERT(closed.memory == closed_one.memory);
}

RC_GTEST_PROP(PoolsOfExperts, HaveSoundPrograms, ()) {
  const Scenario scenario = any_experts_on_equal_pools(false);
  const Program program = lower(scenario.model, scenario.plan, scenario.stack);
  for (const Finding& finding : validate(program)) RC_FAIL(finding.text);
  // All ranks together hold what they do with equal numbers.
  const Scenario one = without_pools(scenario);
  const auto held = [](const Program& of) {
    double sum = 0.0;
    for (std::size_t stage = 0; stage < of.stages.size(); ++stage)
      sum +=
          of.stages[stage].parameters.expert * static_cast<double>(ranks_of_stage(of.plan, stage));
    return sum;
  };
  const double even = held(lower(one.model, one.plan, one.stack));
  RC_ASSERT(std::abs(held(program) / even - 1.0) < 1e-12);
}

RC_GTEST_PROP(PoolsOfExperts, AgreeAtAllLevels, ()) {
  Scenario scenario = any_experts_on_equal_pools(false);
  PoolSpec& second = scenario.cluster.pools[0];
  if (any_flag()) double_speed(second.accelerator);
  second.node.nic.per_node = one_of({1, 4, 8});
  scenario.cluster.between_pools.latency = one_of({Seconds(), milliseconds(1)});
  const StepResult event = simulate_at(scenario, Fidelity::Event).result;
  RC_ASSERT(simulate_step(scenario).step == event.step);
  const Seconds full = simulate_at(scenario, Fidelity::Full).result.step;
  const StepEstimate closed = estimate_step(scenario);
  RC_ASSERT(std::abs(full / event.step - 1.0) < 0.02);
  RC_ASSERT(closed.bound <= event.step * 1.003);
  RC_ASSERT(closed.bound <= closed.analytic);
  RC_ASSERT(std::abs(closed.memory / event.memory().peak - 1.0) < 1e-9);
}

// Eight ranks on a node of each pool, of which the second one computes twice as fast. They hold
// twelve experts in pairs.
Scenario experts_on_two_nodes(std::int64_t first, std::int64_t second) {
  Scenario scenario = small_scenario(16, 1, 1);
  MoeSpec moe;
  moe.experts = 96;
  moe.top_k = 4;
  moe.expert_ffn = 8192;
  moe.balanced_routing = true;
  scenario.model.moe = moe;
  scenario.model.layers = 4;
  scenario.plan.ep = 16;
  scenario.plan.global_batch = 32;
  scenario.cluster.pools = {pool_like_first(scenario.cluster)};
  double_speed(scenario.cluster.pools[0].accelerator);
  scenario.plan.replica_pools = {{scenario.cluster.name, 8, 2, {}, first},
                                 {"second", 8, 2, {}, second}};
  return scenario;
}

// The rows of the first product of the experts on a rank of the stage.
std::int64_t expert_rows(const Program& program, std::size_t stage) {
  for (const Call& call : program.stages[stage].calls)
    for (const Op& op : program.blocks[call.block].ops)
      if (op.name == "experts.up") return std::get<GemmWork>(op.work).m;
  return 0;
}

TEST(PoolsOfExperts, TokensFollowTheExperts) {
  const Scenario scenario = experts_on_two_nodes(4, 8);
  ASSERT_TRUE(is_sound_plan(scenario));
  const Program program = lower(scenario.model, scenario.plan, scenario.stack);
  const std::int64_t first = expert_rows(program, 0), second = expert_rows(program, 1);
  EXPECT_EQ(8 * (first + second), 16 * 4096 * 4);
  EXPECT_NEAR(static_cast<double>(second), 2.0 * static_cast<double>(first), 2.0);
  EXPECT_EQ(program.stages[1].parameters.expert, 2.0 * program.stages[0].parameters.expert);
}

TEST(PoolsOfExperts, MemoryFollowsTheExperts) {
  const auto peak = [](std::int64_t first, std::size_t stage) {
    return simulate_step(experts_on_two_nodes(first, 12 - first)).stages[stage].memory.peak;
  };
  EXPECT_EQ(peak(6, 0), peak(6, 1));
  EXPECT_EQ(peak(4, 0), peak(8, 1));
  EXPECT_LT(peak(4, 0), peak(6, 0));
  EXPECT_GT(peak(4, 1), peak(6, 1));
}

// Experts move from the slow to the fast pool. With a third of them on the slow one both take the
// same time.
TEST(PoolsOfExperts, TheFastestNumbersAreThoseOfThePoolsSpeeds) {
  const auto event = [](std::int64_t first) {
    return simulate_step(experts_on_two_nodes(first, 12 - first)).step;
  };
  const auto analytic = [](std::int64_t first) {
    return estimate_step(experts_on_two_nodes(first, 12 - first)).analytic;
  };
  EXPECT_GT(event(6), event(5));
  EXPECT_GT(event(5), event(4));
  EXPECT_LT(event(4), event(3));
  EXPECT_LT(event(3), event(2));
  for (const std::int64_t first : {6, 5, 4, 3, 2})
    EXPECT_NEAR(analytic(first) / event(first), 1.0, 0.05) << first;
}

}  // namespace
}  // namespace shardwright::sim
