// The estimates of the lower fidelity levels beside the event simulation, for whatever a plan file
// may hold: schedules, shared experts, multi-token prediction and offload that no search tries
// included.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/step/analytic.hpp"
#include "sim/step/simulate.hpp"
#include "tests/sim/step/random_scenario.hpp"

namespace shardwright::sim {
namespace {

RC_GTEST_PROP(Estimates, BoundIsBelowEventAndMemoryThatOfTheReplay, ()) {
  const Scenario scenario = fixtures::any_small_scenario();
  const StepEstimate estimate = estimate_step(scenario);
  const StepResult event = simulate_step(scenario);
  RC_ASSERT(estimate.bound <= event.step);
  const double memory = estimate.memory.value() / event.memory().peak.value();
  RC_ASSERT(memory > 1.0 - 1e-9);
  RC_ASSERT(memory < 1.0 + 1e-9);
}

Scenario eight_layers() {
  Scenario scenario = fixtures::shipped_scenario("llama3-8b");
  scenario.model.layers = 8;
  scenario.plan.tp = 8;
  scenario.plan.seq_len = 8192;
  scenario.plan.global_batch = 4;
  return scenario;
}

// Activations on the host are not on the device; a copy that the kernels beside it do not hide
// takes the time that the link takes.
TEST(OffloadOfActivations, TradesMemoryForTheTimeOfTheLink) {
  Scenario scenario = eight_layers();
  const StepResult kept = simulate_step(scenario);
  scenario.plan.offload_activations = true;
  const StepResult offloaded = simulate_step(scenario);
  EXPECT_LT(offloaded.memory().peak, kept.memory().peak);
  EXPECT_GE(offloaded.step, kept.step);
  scenario.cluster.node.host.accelerator_link = scenario.cluster.node.host.accelerator_link * 0.01;
  const StepResult slow = simulate_step(scenario);
  // Copied both ways for each of 4 microbatches: of 7 layers two outputs of norms, of attention's
  // projections and core, of the feed-forward and its gate, and one residual, each of 8192 tokens.
  const double tokens = 8192.0 * 4.0, ranks = 8.0;
  const double widths = 3.0 * 4096.0 + 6144.0 + 4096.0 + 3.0 * 14336.0;
  const double statistics = 32.0 * 4.0;
  const double bytes = 7.0 * 2.0 * tokens * (2.0 * widths + statistics) / ranks;
  const Seconds copied = Bytes(bytes) / scenario.cluster.node.host.accelerator_link;
  EXPECT_GT(slow.step, copied);
  EXPECT_LT(slow.step, 2.0 * copied);
}

// No share at all is no offload, and all layers are what a plan without a share offloads.
TEST(OffloadOfActivations, LiesBetweenNoneAndAll) {
  Scenario scenario = eight_layers();
  const StepResult none = simulate_step(scenario);
  scenario.plan.offload_activations = true;
  const StepResult all = simulate_step(scenario);
  const auto peak = [&](std::int64_t layers, double ratio) {
    scenario.plan.offload_layers = layers;
    scenario.plan.offload_ratio = ratio;
    return simulate_step(scenario).memory().peak;
  };
  EXPECT_EQ(peak(0, 0.0), none.memory().peak);
  EXPECT_EQ(simulate_step(scenario).step, none.step);
  EXPECT_EQ(peak(8, 1.0), all.memory().peak);
  EXPECT_EQ(simulate_step(scenario).step, all.step);
  Bytes before = none.memory().peak;
  for (std::int64_t layers = 1; layers <= 7; ++layers) {
    EXPECT_LE(peak(layers, 1.0), before) << layers;
    before = peak(layers, 1.0);
  }
  EXPECT_LT(peak(0, 0.6), peak(0, 0.3));
}

double analytic_over_event(const Scenario& scenario) {
  return estimate_step(scenario).analytic / simulate_step(scenario).step;
}

// Copies range from those that the kernels beside them hide to those that take nearly all of the
// step, on one stage and where stages wait for each other.
TEST(OffloadOfActivations, ClosedFormFollowsCopiesOfAnySpeed) {
  for (const double slower : {1.0, 0.3, 0.1, 0.03, 0.01}) {
    for (const std::int64_t pp : {1, 2, 4}) {
      for (const ScheduleKind schedule : {ScheduleKind::OneFOneB, ScheduleKind::ZbH1}) {
        Scenario scenario = eight_layers();
        scenario.model.layers = 16;
        scenario.plan.pp = pp;
        scenario.plan.schedule = schedule;
        scenario.plan.global_batch = 16;
        scenario.plan.offload_activations = true;
        BytesPerSecond& link = scenario.cluster.node.host.accelerator_link;
        link = link * slower;
        EXPECT_NEAR(analytic_over_event(scenario), 1.0, 0.05)
            << "pp " << pp << ", link x " << slower << ", " << name_of(schedule);
      }
    }
  }
}

// One more layer, head and loss on the last stage, of 61 layers as of 8.
TEST(MultiTokenPrediction, CostsTimeAndMemoryOnlyWhereItIsTrained) {
  Scenario scenario = eight_layers();
  const StepResult without = simulate_step(scenario);
  scenario.model.mtp_layers = 1;
  const StepResult with = simulate_step(scenario);
  scenario.plan.multi_token_prediction = false;
  const StepResult off = simulate_step(scenario);
  EXPECT_EQ(off.step, without.step);
  EXPECT_EQ(off.memory().peak, without.memory().peak);
  // FLOP of a ninth layer, of a second head and of the projection.
  const double layer = 4096.0 * (6144.0 + 4096.0) + 3.0 * 4096.0 * 14336.0;
  const double head = 4096.0 * 128256.0, join = 2.0 * 4096.0 * 4096.0;
  const double more = (layer + head + join) / (8.0 * layer + head);
  EXPECT_GT(with.step / without.step, 1.0 + 0.8 * more);
  EXPECT_LT(with.step / without.step, 1.0 + 1.2 * more);
  EXPECT_GT(with.memory().peak, without.memory().peak);
}

}  // namespace
}  // namespace shardwright::sim
