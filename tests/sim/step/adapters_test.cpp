// Laws of steps that train low-rank adapters, against those that train all parameters.
#include <gtest/gtest.h>

#include "sim/step/simulate.hpp"
#include "tests/sim/step/random_scenario.hpp"

namespace shardwright::sim {
namespace {

// Steps of at least 4,096 tokens, where products are longer than the launches of adapters.
std::vector<Scenario> scenarios() {
  std::vector<Scenario> made;
  const auto add = [&](const char* model, const char* stack, auto change) {
    Scenario scenario = fixtures::shipped_scenario(model, stack);
    scenario.plan.seq_len = 4096;
    change(scenario.plan);
    made.push_back(std::move(scenario));
  };
  add("llama3-8b", "fsdp2", [](Plan& plan) {
    plan.dp = plan.global_batch = 8;
    plan.zero_stage = 3;
  });
  add("llama3-70b", "nemo-te", [](Plan& plan) {
    plan.tp = 2;
    plan.pp = 4;
    plan.global_batch = 8;
  });
  add("llama3-70b", "megatron-core", [](Plan& plan) {
    plan.tp = plan.dp = 8;
    plan.global_batch = 16;
    plan.recompute = RecomputePolicy::Full;
  });
  add("mixtral-8x7b", "megatron-core",
      [](Plan& plan) { plan.dp = plan.ep = plan.global_batch = 8; });
  return made;
}

TEST(AdaptedSteps, AreShorterAndSmallerThanFullOnes) {
  for (Scenario scenario : scenarios()) {
    const StepResult full = simulate_step(scenario);
    scenario.plan.lora = Lora{.rank = 16, .targets = {}};
    const StepResult adapted = simulate_step(scenario);
    EXPECT_LT(adapted.step, full.step) << scenario.model.name << " " << scenario.stack.name;
    EXPECT_LT(adapted.memory().peak, full.memory().peak) << scenario.model.name;
    // At best without a third of the products.
    EXPECT_GT(adapted.step, full.step * 0.6) << scenario.model.name;
  }
}

TEST(AdaptedSteps, GrowWithTheirRank) {
  for (Scenario scenario : scenarios()) {
    Seconds step;
    Bytes peak;
    for (const std::int64_t rank : {8, 32, 128, 512}) {
      scenario.plan.lora = Lora{.rank = rank, .targets = {}};
      const StepResult result = simulate_step(scenario);
      EXPECT_GE(result.step, step) << scenario.model.name << " rank " << rank;
      EXPECT_GT(result.memory().peak, peak) << scenario.model.name << " rank " << rank;
      step = result.step;
      peak = result.memory().peak;
    }
  }
}

// Weights of 4 bits take time to convert, and a quarter of the memory.
TEST(AdaptedSteps, TradeTimeForMemoryIn4Bits) {
  for (Scenario scenario : scenarios()) {
    scenario.plan.lora = Lora{.rank = 16, .targets = {}};
    const StepResult plain = simulate_step(scenario);
    scenario.plan.lora->base = FrozenFormat::Nf4;
    const StepResult narrow = simulate_step(scenario);
    EXPECT_LT(narrow.memory().of(MemoryCategory::Weights),
              plain.memory().of(MemoryCategory::Weights) * 0.5);
    EXPECT_LT(narrow.memory().peak, plain.memory().peak) << scenario.model.name;
    // Gathers of a quarter of the bytes may be worth the time of the conversion.
    if (scenario.plan.zero_stage < 3) {
      EXPECT_GT(narrow.step, plain.step) << scenario.model.name;
    }
  }
}

// QLoRA trains LLaMA-65B on one GPU of 48 GB (arXiv 2305.14314), which 16 bits would fill three
// times.
TEST(AdaptedSteps, Of65BillionParametersFitInto48Gigabytes) {
  Scenario scenario = fixtures::shipped_scenario("llama-65b", "fsdp2");
  scenario.plan.seq_len = 512;
  scenario.plan.recompute = RecomputePolicy::Full;
  scenario.plan.lora = Lora{.rank = 16, .targets = {}, .base = FrozenFormat::Nf4};
  EXPECT_LT(simulate_step(scenario).memory().peak, gigabytes(48.0));
  scenario.plan.lora->base = FrozenFormat::Plain;
  EXPECT_GT(simulate_step(scenario).memory().peak, gigabytes(130.0));
}

}  // namespace
}  // namespace shardwright::sim
