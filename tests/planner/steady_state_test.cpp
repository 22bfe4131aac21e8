// Steps whose pipelines repeat, against replays of all of their microbatches.
#include "sim/step/steady_state.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "sim/step/simulate.hpp"
#include "tests/planner/random_plan.hpp"
#include "tests/planner/sample_share.hpp"

namespace shardwright::planner {
namespace {

// True if the step is simulated by a part of its microbatches.
bool is_shortened(const Scenario& scenario) {
  const BlockSet blocks = make_blocks(scenario.model, scenario.plan, scenario.stack);
  for (const std::int64_t microbatches : sim::short_steps(scenario.plan)) {
    const auto step = sim::shorten(scenario, blocks, microbatches);
    if (!step) return false;
    const sim::Prices prices = sim::price(step->program, scenario.cluster, scenario.stack);
    if (sim::replay_folded(step->program, prices, {.periods = step->periods}).period) return true;
  }
  return false;
}

sim::StepResult simulate_whole(const Scenario& scenario) {
  const sim::PricedStep step = sim::lower_and_price(scenario);
  return sim::step_result(scenario, step.program, step.prices,
                          sim::replay_folded(step.program, step.prices));
}

std::vector<Seconds> parts_of(const sim::StageResult& stage) {
  const sim::TimeBreakdown& time = stage.time;
  std::vector<Seconds> parts = {time.recompute, time.total()};
  for (const sim::StepPart part : enumerators<sim::StepPart>()) parts.push_back(time.of(part));
  for (const sim::StreamUse& use : stage.streams) parts.push_back(use.busy);
  return parts;
}

// The largest difference of two times of a step, as a share of the step.
double difference(const sim::StepResult& a, const sim::StepResult& b) {
  double largest = std::abs(a.step / b.step - 1.0);
  const auto compare = [&](Seconds first, Seconds second) {
    largest = std::max(largest, std::abs((first - second) / b.step));
  };
  compare(a.basis.measured, b.basis.measured);
  compare(a.basis.formula, b.basis.formula);
  compare(a.basis.extrapolated, b.basis.extrapolated);
  for (std::size_t s = 0; s < b.stages.size(); ++s) {
    const std::vector<Seconds> first = parts_of(a.stages[s]), second = parts_of(b.stages[s]);
    for (std::size_t i = 0; i < second.size(); ++i) compare(first[i], second[i]);
  }
  return largest;
}

// A random plan with many microbatches, whose replay does not take long.
std::optional<Scenario> long_run(std::mt19937& random) {
  RandomRun run = random_run(random);
  run.plan.global_batch *= pick<std::int64_t>(random, {2, 4, 8, 16});
  const std::int64_t layers = run.request.model.layers * run.plan.microbatches();
  const bool valid = !first_broken_rule(run.request.model, run.request.cluster, run.plan);
  if (!valid || layers > 6000 || sim::short_steps(run.plan).empty()) return std::nullopt;
  return scenario_of(run.request, run.plan);
}

TEST(SteadyState, StandsForThePeriodsThatAreLeftOut) {
  std::mt19937 random(20261126);
  constexpr int kRuns = 1000 / kSampleShare;
  std::map<ScheduleKind, int> drawn, shortened;
  double largest = 0.0;
  for (int i = 0; i < kRuns;) {
    const auto scenario = long_run(random);
    if (!scenario) continue;
    ++i;
    ++drawn[scenario->plan.schedule];
    if (!is_shortened(*scenario)) continue;
    ++shortened[scenario->plan.schedule];
    const sim::StepResult whole = simulate_whole(*scenario);
    const sim::StepResult fast = sim::simulate_step(*scenario);
    const double differs = difference(fast, whole);
    largest = std::max(largest, differs);
    ASSERT_LE(differs, 1e-9) << i << " " << scenario->model.name << " "
                             << name_of(scenario->plan.schedule);
    ASSERT_NEAR(fast.throughput.hfu / whole.throughput.hfu, 1.0, 1e-9) << i;
    ASSERT_EQ(fast.bottleneck, whole.bottleneck) << i;
    for (std::size_t s = 0; s < whole.stages.size(); ++s) {
      ASSERT_NEAR(fast.stages[s].memory.peak / whole.stages[s].memory.peak, 1.0, 1e-12) << i;
      ASSERT_EQ(fast.stages[s].memory.op, whole.stages[s].memory.op) << i;
    }
  }
  for (const auto& [schedule, count] : drawn)
    RecordProperty(name_of(schedule),
                   std::to_string(shortened[schedule]) + " of " + std::to_string(count));
  RecordProperty("largest_difference", std::to_string(largest * 1e12) + "e-12");
  EXPECT_GT(shortened[ScheduleKind::OneFOneB] * 2, drawn[ScheduleKind::OneFOneB]);
  EXPECT_GT(shortened[ScheduleKind::Interleaved] * 2, drawn[ScheduleKind::Interleaved]);
}

}  // namespace
}  // namespace shardwright::planner
