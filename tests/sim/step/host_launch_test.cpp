// Laws of what the host needs to issue the ops of a block.
#include "sim/step/host_launch.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/lowering/lowering.hpp"
#include "sim/step/simulate.hpp"
#include "tests/sim/step/random_scenario.hpp"

namespace shardwright::sim {
namespace {

Scenario sparse_scenario() {
  Scenario scenario = fixtures::shipped_scenario("qwen3-30b-a3b");
  scenario.model.layers = 4;
  scenario.plan.dp = 8;
  scenario.plan.ep = 8;
  scenario.plan.global_batch = 8;
  scenario.plan.seq_len = 512;
  return scenario;
}

double issued(const Scenario& scenario, const std::string& name) {
  const Program program = lower(scenario.model, scenario.plan, scenario.stack);
  const HostLaunch host = host_launch(scenario.stack, scenario.cluster);
  double sum = 0.0;
  for (const Block& block : program.blocks) {
    if (block.name != name) continue;
    for (const OpLaunch& launch : host.of(block)) sum += launch.before + launch.behind;
  }
  return sum;
}

TEST(HostLaunch, AModuleCostsMoreThanAKernelAndAnFp8OneMoreStill) {
  const Scenario scenario = sparse_scenario();
  Block block;
  for (const OpKind kind : {OpKind::Gemm, OpKind::GroupedGemm, OpKind::Attention, OpKind::Norm})
    block.ops.emplace_back().kind = kind;
  const std::vector<OpLaunch> half = host_launch(scenario.stack, scenario.cluster).of(block);
  for (const std::size_t module : {0, 1, 2}) EXPECT_GT(half[module].before, 4.0 * half[3].before);
  for (Op& op : block.ops) op.precision = Precision::Fp8;
  const std::vector<OpLaunch> eight = host_launch(scenario.stack, scenario.cluster).of(block);
  EXPECT_GT(eight[0].before, 1.5 * half[0].before);
  EXPECT_EQ(eight[2].before, half[2].before);  // attention casts nothing
  EXPECT_EQ(eight[3].before, half[3].before);
}

TEST(HostLaunch, GraphsUpToTheExchangeCostLessThanNoneAndMoreThanWholeOnes) {
  Scenario scenario = sparse_scenario();
  for (const std::string block : {"layer.forward", "layer.backward"}) {
    scenario.stack.host.graph_modules = {};
    scenario.stack.host.cuda_graphs = false;
    const double none = issued(scenario, block);
    scenario.stack.host.graph_modules = {GraphModule::Router};
    const double router = issued(scenario, block);
    scenario.stack.host.graph_modules = {GraphModule::Attention, GraphModule::Router};
    const double some = issued(scenario, block);
    scenario.stack.host.cuda_graphs = true;
    const double whole = issued(scenario, block);
    EXPECT_LT(router, none) << block;
    EXPECT_LT(some, router) << block;
    EXPECT_LT(some, 0.9 * none) << block;
    EXPECT_LT(whole, 0.1 * some) << block;
  }
}

TEST(HostLaunch, ASlowerHostTakesLongerForEverythingAlike) {
  Scenario scenario = sparse_scenario();
  const double reference = issued(scenario, "layer.forward");
  scenario.cluster.node.host.speed *= 0.5;
  EXPECT_NEAR(issued(scenario, "layer.forward") / reference, 2.0, 1e-12);
}

RC_GTEST_PROP(HostLaunch, LongerModulesAreNeverFaster, ()) {
  Scenario scenario = fixtures::any_small_scenario();
  scenario.stack.host.module_launch_time = Seconds(0);
  const Seconds thin = simulate_step(scenario).step;
  scenario.stack.host.module_launch_time = microseconds(fixtures::one_of({10.0, 100.0, 1000.0}));
  RC_ASSERT(simulate_step(scenario).step >= thin * (1.0 - 1e-12));
}

RC_GTEST_PROP(HostLaunch, GraphsUpToTheExchangeAreNeverSlower, ()) {
  Scenario scenario = fixtures::any_small_scenario();
  scenario.stack.host.graph_modules = {};
  const Seconds eager = simulate_step(scenario).step;
  scenario.stack.host.graph_modules = {GraphModule::Attention, GraphModule::Router};
  RC_ASSERT(simulate_step(scenario).step <= eager * (1.0 + 1e-12));
}

}  // namespace
}  // namespace shardwright::sim
