// Fits of profiles to training steps: figures that steps were made with are found again.
#include "validation/training_fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/step/simulate.hpp"
#include "tests/validation/shipped_measurements.hpp"

namespace shardwright::validation {
namespace {

constexpr std::size_t kRows = 24;
constexpr double kClock = 0.75;

// Published plans of one accelerator and one stack, as if they had been measured on accelerators
// that sustain that clock.
std::vector<Measurement> made_up_rows() {
  std::vector<Measurement> rows;
  std::vector<Plan> plans;
  for (Measurement& row : read_measurements(shipped_file("training/hagemann"))) {
    if (!row.scenario || row.scenario->plan.world_size() == 1) continue;
    Scenario scenario = *row.scenario;
    scenario.cluster.accelerator.sustained_clock_ratio = kClock;
    row.figure.emplace().value = sim::simulate_step(scenario).step.value();
    // Rows of one plan are of one source: repeats are left out with it.
    const auto same = std::find(plans.begin(), plans.end(), scenario.plan);
    row.source.title = "source " + std::to_string((same - plans.begin()) % 4);
    if (same == plans.end()) plans.push_back(scenario.plan);
    rows.push_back(row);
    if (rows.size() == kRows) break;
  }
  return rows;
}

const FittedFigure& figure(const TrainingFit& fit, const std::string& key) {
  const auto found =
      std::find_if(fit.figures.begin(), fit.figures.end(),
                   [&](const FittedFigure& each) { return each.parameter.key == key; });
  if (found == fit.figures.end()) throw RuntimeFailure("no figure " + key);
  return *found;
}

// Nearly: priors pull all figures that move the same steps towards what is typical.
TEST(TrainingFit, FindsTheClockThatStepsWereMadeWith) {
  const std::vector<Measurement> rows = made_up_rows();
  ASSERT_EQ(rows.size(), kRows);
  const TrainingFit fit = fit_training(rows_to_fit(rows));
  EXPECT_LT(fit.after.median_abs, 0.015);
  EXPECT_GT(fit.before.median_abs, 4.0 * fit.after.median_abs);
  EXPECT_LT(fit.held_out.median_abs, 0.03);
  EXPECT_EQ(fit.held_out_errors.size(), rows.size());
  const FittedFigure& clock = figure(fit, "efficiency/sustained_clock_ratio");
  EXPECT_TRUE(clock.is_fitted());
  EXPECT_LT(clock.after, clock.high);
  EXPECT_GT(clock.after, clock.low);
  EXPECT_NEAR(clock.after, kClock, 0.02);
  EXPECT_GT(clock.before, kClock + 0.1);
  // All accelerators share one spread, which every step of several of them shows.
  const FittedFigure& spread = figure(fit, "efficiency/speed_variation_ratio");
  EXPECT_EQ(spread.parameter.kind, ProfileKind::AllAccelerators);
  EXPECT_EQ(spread.parameter.rows.size(), rows.size());
}

// No figure leaves its physical range, and one that the rows say nothing about stays as it is.
TEST(TrainingFit, WhatTheRowsDoNotDetermineStaysAsItIs) {
  std::vector<Measurement> rows = made_up_rows();
  rows.resize(8);
  for (const FittedFigure& each : fit_training(rows_to_fit(rows)).figures) {
    EXPECT_GE(each.after, each.parameter.low) << each.parameter.key;
    EXPECT_LE(each.after, each.parameter.high) << each.parameter.key;
    if (!each.is_fitted()) {
      EXPECT_EQ(each.after, each.before) << each.parameter.key;
    }
  }
}

// The one stack has tensor parallelism, whose collectives show their speed; steps of the other
// have hardly any.
std::vector<Measurement> rows_of_two_stacks() {
  std::vector<Measurement> rows;
  std::size_t with_tp = 0, without = 0;
  for (Measurement& row : read_measurements(shipped_file("training/hagemann"))) {
    if (!row.scenario || row.scenario->plan.world_size() == 1) continue;
    const bool has_tp = row.scenario->plan.tp > 1;
    std::size_t& taken = has_tp ? with_tp : without;
    if (taken == kRows / 2) continue;
    ++taken;
    Scenario scenario = *row.scenario;
    if (!has_tp) scenario.stack = load_stack("megatron-lm-2023");
    row.scenario->stack = scenario.stack;
    scenario.stack.communication.collective_ratio = 0.5;
    row.figure.emplace().value = sim::simulate_step(scenario).step.value();
    row.source.title = "source " + std::to_string(rows.size() % 4);
    rows.push_back(row);
  }
  return rows;
}

// Where rows leave a figure open that stacks have in common, the other stacks determine it.
TEST(TrainingFit, WhatStacksHaveInCommonIsLearntFromTheOthers) {
  const std::vector<Measurement> rows = rows_of_two_stacks();
  ASSERT_EQ(rows.size(), kRows);
  std::map<std::string, FittedFigure> ratios;
  for (const FittedFigure& each : fit_training(rows_to_fit(rows)).figures)
    if (each.parameter.key == "communication/collective_ratio")
      ratios.emplace(each.parameter.profile, each);
  const FittedFigure& known = ratios.at("megatron-flash-2023");
  const FittedFigure& open = ratios.at("megatron-lm-2023");
  const FittedFigure& others = ratios.at("other stacks");
  EXPECT_NEAR(known.after, 0.5, 0.1);
  EXPECT_TRUE(open.is_fitted());
  EXPECT_GT(open.after, known.after);
  EXPECT_LT(open.after, 0.5 * (known.after + open.parameter.typical));
  EXPECT_NEAR(others.after, open.after, 0.05);
  EXPECT_EQ(others.parameter.kind, ProfileKind::OtherStacks);
  EXPECT_TRUE(others.parameter.rows.empty());
  // Less is known of a stack that no row uses than of one with rows.
  EXPECT_GT(others.high / others.low, known.high / known.low);
}

TEST(TrainingFit, RowsWithoutAStepAreRefused) {
  Measurement row = made_up_rows().front();
  row.outcome = Outcome::OutOfMemory;
  EXPECT_THROW(fit_training(rows_to_fit({row})), InputError);
}

Scenario llama() {
  return {load_model("llama3-8b"), load_cluster("dgx-h100"), load_stack("nemo-te"), Plan()};
}

TEST(SameConfiguration, OtherNamesAndFabricsAreNoOtherConfiguration) {
  Scenario renamed = llama();
  renamed.model.name = "Meta-Llama-3-8B";
  renamed.cluster.name = "a machine room";
  renamed.cluster.node.nic.bandwidth *= 2.0;
  renamed.stack = load_stack("megatron-bridge");  // a variant of it
  const auto numbers = configuration_numbers({llama(), renamed, llama()});
  EXPECT_EQ(numbers, std::vector<std::size_t>(3, 0));
}

TEST(SameConfiguration, EachPartOfOneDistinguishesIt) {
  const std::vector<std::function<void(Scenario&)>> changes = {
      [](Scenario& each) { each.model.layers += 1; },
      [](Scenario& each) { each.cluster.accelerator.name = "a100-80gb"; },
      [](Scenario& each) { each.stack.name = "fsdp2"; },
      [](Scenario& each) { each.plan.dp *= 2; },
      [](Scenario& each) { each.plan.tp *= 2; },
      [](Scenario& each) { each.plan.micro_batch += 1; },
      [](Scenario& each) { each.plan.seq_len *= 2; },
      [](Scenario& each) { each.plan.precision = Precision::Fp8; },
      [](Scenario& each) { each.plan.recompute = RecomputePolicy::Full; }};
  std::vector<Scenario> all = {llama()};
  for (const auto& change : changes) change(all.emplace_back(llama()));
  const auto numbers = configuration_numbers(all);
  for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], i);
}

}  // namespace
}  // namespace shardwright::validation
