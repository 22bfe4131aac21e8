// Laws of fully sharded steps: gathers and reductions of one group take turns.
#include <gtest/gtest.h>

#include "core/lowering/lowering.hpp"
#include "sim/step/analytic.hpp"
#include "sim/step/prices.hpp"
#include "sim/step/simulate.hpp"
#include "tests/sim/step/random_scenario.hpp"

namespace shardwright::sim {
namespace {

Scenario sharded_llama() {
  Scenario scenario = fixtures::shipped_scenario("llama3-8b", "fsdp2");
  scenario.plan.dp = 64;
  scenario.plan.global_batch = 256;
  scenario.plan.seq_len = 2048;
  scenario.plan.zero_stage = 3;
  return scenario;
}

bool shards(const Op& op) {
  const auto* message = std::get_if<CommunicationWork>(&op.work);
  return message != nullptr && message->group == Group::ShardInner &&
         (op.kind == OpKind::AllGather || op.kind == OpKind::ReduceScatter);
}

TEST(ShardedStep, OneCommunicatorHasOneStream) {
  const Scenario scenario = sharded_llama();
  const Program program = lower(scenario.model, scenario.plan, scenario.stack);
  int gathers = 0, reductions = 0;
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      if (!shards(op)) continue;
      EXPECT_EQ(op.stream, Stream::ParameterGather) << op.name;
      ++(op.kind == OpKind::AllGather ? gathers : reductions);
    }
  }
  EXPECT_GT(gathers, 0);
  EXPECT_GT(reductions, 0);
}

// The sum of all gathers and reductions of the step.
Seconds exchanging(const Scenario& scenario) {
  const Program program = lower(scenario.model, scenario.plan, scenario.stack);
  const Prices prices = price(program, scenario.cluster, scenario.stack);
  Seconds sum;
  for (const Call& call : program.stages.front().calls) {
    const std::vector<Op>& ops = program.blocks[call.block].ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (shards(ops[i])) sum += prices.blocks[call.block][i];
    }
  }
  return sum;
}

TEST(ShardedStep, BoundByItsNetworkTakesGathersAndReductionsTogether) {
  Scenario scenario = sharded_llama();
  scenario.cluster.node.nic.bandwidth *= 0.05;
  const Seconds all = exchanging(scenario);
  const StepResult step = simulate_step(scenario);
  const TimeBreakdown& time = step.stages[0].time;
  EXPECT_GT(all, 4.0 * (time.gemm + time.attention + time.memory_bound));
  EXPECT_GE(step.step, all);
  EXPECT_LT(step.step, 1.1 * all);
}

// Nothing of them is hidden without overlap, and either switch alone hides less than both together.
TEST(ShardedStep, WithoutOverlapComputesAndExchangesInTurn) {
  Scenario scenario = sharded_llama();
  const auto step_with = [&](bool gather, bool reduce) {
    scenario.plan.overlap.param_gather = gather;
    scenario.plan.overlap.grad_reduce = reduce;
    const StepResult result = simulate_step(scenario);
    const StepEstimate estimate = estimate_step(scenario);
    EXPECT_LE(estimate.bound, result.step);
    EXPECT_NEAR(estimate.analytic / result.step, 1.0, 0.03);
    return result;
  };
  const Seconds both = step_with(true, true).step;
  EXPECT_GT(step_with(false, true).step, 1.01 * both);
  EXPECT_GT(step_with(true, false).step, 1.01 * both);
  const StepResult neither = step_with(false, false);
  const TimeBreakdown& time = neither.stages[0].time;
  const Seconds computing = time.gemm + time.attention + time.memory_bound + time.optimizer;
  EXPECT_NEAR(neither.step / (computing + exchanging(scenario)), 1.0, 0.02);
}

TEST(ShardedStep, EstimatesKnowThatReductionsHoldGathersUp) {
  Scenario scenario = sharded_llama();
  for (const double slower : {1.0, 0.3, 0.1, 0.05}) {
    scenario.cluster.node.nic.bandwidth *= slower;
    const Seconds step = simulate_step(scenario).step;
    const StepEstimate estimate = estimate_step(scenario);
    EXPECT_LE(estimate.bound, step) << slower;
    EXPECT_NEAR(estimate.analytic / step, 1.0, 0.03) << slower;
  }
}

}  // namespace
}  // namespace shardwright::sim
