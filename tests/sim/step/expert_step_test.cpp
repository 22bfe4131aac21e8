// Laws of steps with experts: what a learned router, a host that reads token counts, and an
// exchange beside another microbatch cost and save.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/lowering/lowering.hpp"
#include "core/spec/plan_check.hpp"
#include "sim/step/simulate.hpp"
#include "tests/sim/step/random_scenario.hpp"

namespace shardwright::sim {
namespace {

Scenario any_sparse_scenario() {
  Scenario scenario;
  do {
    scenario = fixtures::any_small_scenario();
  } while (!scenario.model.moe);
  return scenario;
}

Scenario mixtral_on_a_node() {
  Scenario scenario = fixtures::shipped_scenario("mixtral-8x7b");
  Plan& plan = scenario.plan;
  plan.dp = 8;
  plan.ep = 8;
  plan.global_batch = 32;
  plan.seq_len = 4096;
  return scenario;
}

// Rows that are padded to twice the even share cost what twice the tokens of the experts do: each
// exchange and expert kernel is of twice the size, and the kept activations, too.
TEST(ExpertStep, PaddedCapacityCostsTimeAndMemory) {
  Scenario scenario = mixtral_on_a_node();
  scenario.stack.host.reads_token_counts = false;
  scenario.model.moe->balanced_routing = true;
  const StepResult dropless = simulate_step(scenario);
  scenario.model.moe->capacity_factor = 1.0;
  scenario.model.moe->pads_to_capacity = true;
  EXPECT_EQ(simulate_step(scenario).step, dropless.step);
  scenario.model.moe->capacity_factor = 2.0;
  const StepResult padded = simulate_step(scenario);
  EXPECT_GT(padded.step, 1.3 * dropless.step);
  EXPECT_LT(padded.step, 2.0 * dropless.step);
  EXPECT_GT(padded.memory().peak, dropless.memory().peak);
  // Padding is no work of the model's.
  EXPECT_DOUBLE_EQ(padded.throughput.mfu * padded.step.value(),
                   dropless.throughput.mfu * dropless.step.value());
}

RC_GTEST_PROP(ExpertStep, ForcedBalanceIsNeverSlower, ()) {
  Scenario scenario = any_sparse_scenario();
  scenario.model.moe->load_variation = fixtures::one_of({0.05, 0.3, 1.0});
  const Seconds learned = simulate_step(scenario).step;
  scenario.model.moe->balanced_routing = true;
  RC_ASSERT(simulate_step(scenario).step <= learned * (1.0 + 1e-12));
}

RC_GTEST_PROP(ExpertStep, ReadingTokenCountsIsNeverFaster, ()) {
  Scenario scenario = any_sparse_scenario();
  scenario.stack.host.reads_token_counts = false;
  const Seconds ahead = simulate_step(scenario).step;
  scenario.stack.host.reads_token_counts = true;
  RC_ASSERT(simulate_step(scenario).step >= ahead * (1.0 - 1e-12));
}

// A host knows how many rows a padded expert has.
TEST(ExpertStep, NobodyReadsTokenCountsOfPaddedExperts) {
  Scenario scenario = mixtral_on_a_node();
  scenario.model.moe->capacity_factor = 1.0;
  scenario.model.moe->pads_to_capacity = true;
  ASSERT_TRUE(scenario.stack.host.reads_token_counts);
  const StepResult padded = simulate_step(scenario);
  scenario.stack.host.reads_token_counts = false;
  EXPECT_EQ(simulate_step(scenario).step, padded.step);
}

TEST(ExpertStep, TakesAsMuchLongerAsTheFullestRankHasMoreToDo) {
  Scenario scenario = mixtral_on_a_node();
  scenario.stack.host.reads_token_counts = false;
  scenario.model.moe->balanced_routing = true;
  const StepResult even = simulate_step(scenario);
  scenario.model.moe->balanced_routing = false;
  scenario.model.moe->load_variation = 0.2;  // 1 + 0.2 * 1.42 of the mean on the fullest of 8 ranks
  const StepResult learned = simulate_step(scenario);
  const double longer = learned.stages[0].time.gemm / even.stages[0].time.gemm;
  EXPECT_GT(longer, 1.15);  // attention's products are no experts'
  EXPECT_LT(longer, 1.0 + 0.2 * 1.4237);
  // Neither are the latencies of the exchanges.
  const double exchanged =
      learned.stages[0].time.exposed[Axis::Expert] / even.stages[0].time.exposed[Axis::Expert];
  EXPECT_GT(exchanged, 1.15);
  EXPECT_LT(exchanged, 1.0 + 0.2 * 1.4237);
}

TEST(ExpertStep, HostThatReadsTokenCountsHoldsUpSmallKernelsOnly) {
  Scenario scenario = mixtral_on_a_node();
  const auto waiting = [&](std::int64_t tokens, bool reads) {
    scenario.plan.seq_len = tokens;
    scenario.stack.host.reads_token_counts = reads;
    return simulate_step(scenario).stages[0].time.host;
  };
  scenario.stack.host.router_launches = 0;
  EXPECT_EQ(waiting(4096, false), Seconds(0));
  const Seconds short_sequences = waiting(256, true);
  EXPECT_GT(short_sequences, Seconds(0));
  // The queue runs empty once a sparse layer: no longer than the host needs for what follows.
  const auto layers = static_cast<double>(scenario.model.layers);
  const Seconds most = scenario.stack.host.launch_time * (layers * 4.0 * 60.0);
  EXPECT_LT(waiting(4096, true), most);
}

TEST(ExpertStep, ExchangesHideBehindTheKernelsOfAnotherMicrobatchAtMost) {
  Scenario scenario = mixtral_on_a_node();
  const StepResult alone = simulate_step(scenario);
  scenario.plan.overlap.expert_microbatches = true;
  scenario.stack.overlap.expert_parallel_share = 0.5;
  const StepResult beside = simulate_step(scenario);
  const Seconds exposed = alone.stages[0].time.exposed[Axis::Expert];
  // Kernels take longer than the exchanges here: half of these hide.
  EXPECT_NEAR(beside.stages[0].time.exposed[Axis::Expert] / exposed, 0.5, 0.02);
  EXPECT_LT(beside.step, alone.step);
}

// Exchanges can hide behind kernels only, where they take longer than these.
TEST(ExpertStep, ExchangesOverASlowNetworkStayExposed) {
  Scenario scenario = mixtral_on_a_node();
  scenario.plan.dp = 64;
  scenario.plan.ep = 8;
  scenario.plan.rank_order = {Axis::Tensor, Axis::Context, Axis::Data, Axis::Expert,
                              Axis::Pipeline};
  scenario.plan.global_batch = 64;
  scenario.cluster.node.nic.bandwidth *= 0.02;
  const StepResult alone = simulate_step(scenario);
  scenario.plan.overlap.expert_microbatches = true;
  const StepResult beside = simulate_step(scenario);
  const Seconds saved = alone.step - beside.step;
  EXPECT_GT(saved, Seconds(0));
  EXPECT_LT(saved, alone.stages[0].time.gemm + alone.stages[0].time.attention +
                       alone.stages[0].time.memory_bound);
  EXPECT_LT(saved, 0.3 * alone.step);
}

// Each expert's rows are cast and multiplied by launches of their own, unless one kernel does all.
TEST(ExpertStep, HostLaunchesTheKernelsOfEachExpert) {
  Scenario scenario = mixtral_on_a_node();
  scenario.plan.ep = 1;
  scenario.plan.precision = Precision::Fp8;
  const auto further = [&](bool fused) {
    scenario.stack.fusion.grouped_gemm = fused;
    const Program program = lower(scenario.model, scenario.plan, scenario.stack);
    std::int64_t launches = 0;
    for (const Block& block : program.blocks) {
      for (const Op& op : block.ops) {
        if (op.name == "experts.up" || op.name == "experts.up.input.cast")
          launches += op.further_launches;
      }
    }
    return launches;
  };
  EXPECT_EQ(further(false), 2 * 7);
  EXPECT_EQ(further(true), 0);
}

}  // namespace
}  // namespace shardwright::sim
