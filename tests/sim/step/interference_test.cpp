#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/lowering/lowering.hpp"
#include "sim/step/folded_replay.hpp"
#include "sim/step/full_replay.hpp"
#include "sim/step/simulate.hpp"
#include "tests/sim/step/random_scenario.hpp"

namespace shardwright::sim {
namespace {

using fixtures::any_small_scenario;
using fixtures::small_scenario;

Scenario with_slowdown(Scenario scenario, double kernels, double collectives = 0.0) {
  scenario.stack.overlap.slowdown = kernels;
  scenario.stack.overlap.collective_slowdown = collectives;
  return scenario;
}

Seconds kernels(const TimeBreakdown& time) {
  return time.compute() + time.optimizer;
}

// Slower kernels may keep collectives from sharing a port, which saves a little of what those
// cost each other.
constexpr double kLostOverlap = 5e-3;

// Kernels take between 1 and 1 + s times as long; an event graph's end grows with its durations.
RC_GTEST_PROP(Interference, CostsAtMostItsShareOfTheStep, ()) {
  const Scenario scenario = any_small_scenario();
  const double slowdown = *rc::gen::element(0.02, 0.1, 0.4);
  const StepResult without = simulate_step(with_slowdown(scenario, 0.0));
  const StepResult with = simulate_step(with_slowdown(scenario, slowdown));
  constexpr double kRounding = 1e-9;
  RC_ASSERT(with.step >= without.step * (1.0 - kLostOverlap));
  RC_ASSERT(with.step <= without.step * ((1.0 + slowdown) * (1.0 + kRounding)));
  for (std::size_t s = 0; s < with.stages.size(); ++s) {
    const TimeBreakdown& time = with.stages[s].time;
    RC_ASSERT(time.interference <= kernels(time) * (slowdown * (1.0 + kRounding)));
    RC_ASSERT(without.stages[s].time.interference == Seconds());
    RC_ASSERT(kernels(time) == kernels(without.stages[s].time));
    RC_ASSERT(std::abs(time.total() / with.step - 1.0) < kRounding);
    const StreamUse& compute = with.stages[s].streams[Stream::Compute];
    RC_ASSERT(std::abs((compute.busy - kernels(time) - time.interference) / with.step) < kRounding);
  }
}

// Nothing takes longer than 1 + max(s, c) times what it takes at s = c = 0.
RC_GTEST_PROP(Interference, OfKernelsAndCollectivesStretchesTheStepByTheGreaterAtMost, ()) {
  const Scenario scenario = any_small_scenario();
  const double kernels = *rc::gen::element(0.0, 0.1, 0.4);
  const double collectives = *rc::gen::element(0.0, 0.1, 0.4);
  const Seconds without = simulate_step(with_slowdown(scenario, 0.0)).step;
  const Seconds with = simulate_step(with_slowdown(scenario, kernels, collectives)).step;
  constexpr double kRounding = 1e-9;
  RC_ASSERT(with >= without * (1.0 - kLostOverlap));
  RC_ASSERT(with <= without * ((1.0 + std::max(kernels, collectives)) * (1.0 + kRounding)));
}

// One rank with no pipeline: collectives start when a kernel has ended, so all of the step grows.
TEST(Interference, GrowsWithTheSlowdown) {
  for (const int zero_stage : {1, 3}) {
    Scenario scenario = small_scenario(16, 1, 1, zero_stage == 3 ? "fsdp2" : "megatron-core");
    scenario.plan.zero_stage = zero_stage;
    scenario.plan.global_batch = 64;
    Seconds previous;
    for (const double slowdown : {0.0, 0.05, 0.1, 0.2, 0.4, 0.8}) {
      const Seconds step = simulate_step(with_slowdown(scenario, slowdown)).step;
      EXPECT_GT(step, previous) << zero_stage << " " << slowdown;
      previous = step;
    }
  }
}

// FSDP whose gathers take longer than its kernels: they are slowed while kernels run, and the step
// waits for them.
TEST(Interference, KernelsSlowTheCollectivesBesideThem) {
  Scenario scenario = small_scenario(16, 1, 1, "fsdp2");
  scenario.plan.zero_stage = 3;
  scenario.plan.global_batch = 16;
  scenario.plan.seq_len = 1024;
  const StepResult without = simulate_step(with_slowdown(scenario, 0.0));
  const StepResult with = simulate_step(with_slowdown(scenario, 0.0, 0.4));
  EXPECT_GT(with.step, without.step * 1.01);
  EXPECT_EQ(with.stages[0].time.interference, Seconds());
  EXPECT_LT(with.step, without.step * 1.4);
}

// There is nothing to run beside without communication.
TEST(Interference, LeavesASingleRankAlone) {
  const Scenario scenario = small_scenario(1, 1, 1);
  EXPECT_EQ(simulate_step(with_slowdown(scenario, 0.5)).step,
            simulate_step(with_slowdown(scenario, 0.0)).step);
}

}  // namespace
}  // namespace shardwright::sim
