#include <gtest/gtest.h>

#include <algorithm>

#include "sim/step/simulate.hpp"
#include "sim/validation/row_scenario.hpp"
#include "sim/validation/training_row.hpp"
#include "tests/sim/validation/shipped_rows.hpp"

namespace shardwright::sim {
namespace {

constexpr double kAnalyticError = 1.05;  // the rung that chooses, over the one that judges here

TrainingRow llama_65b_row() {
  return shipped_row("hagemann-llama65B-s2048-g128-tp4-pp2-mb4-fa2-ac");
}

TrainingRow left_open(TrainingRow row) {
  row.plan.micro_batch.reset();
  row.plan.virtual_pp.reset();
  row.plan.schedule.clear();
  row.plan.recompute.clear();
  return row;
}

bool fits(const Scenario& scenario, const StepResult& result) {
  return result.memory().peak <= scenario.cluster.accelerator.memory;
}

TEST(TunedPlan, NoStatedPlanThatFitsIsFaster) {
  const RowScenario open = scenario_of(left_open(llama_65b_row()));
  ASSERT_TRUE(open.scenario) << open.reason;
  const StepResult tuned = simulate_step(*open.scenario);
  EXPECT_TRUE(fits(*open.scenario, tuned));
  for (const std::int64_t sequences : {1, 2, 4, 8}) {
    for (const char* recompute : {"none", "full"}) {
      TrainingRow row = llama_65b_row();
      row.plan.micro_batch = sequences;
      row.plan.recompute = recompute;
      const RowScenario stated = scenario_of(row);
      ASSERT_TRUE(stated.scenario) << stated.reason;
      const StepResult result = simulate_step(*stated.scenario);
      if (!fits(*stated.scenario, result)) continue;
      EXPECT_LE(tuned.step, result.step * kAnalyticError) << sequences << " " << recompute;
    }
  }
}

// A rate says nothing of the batch; who measured it filled the accelerators.
TEST(TunedPlan, WhereNothingTellsTheBatchItFollowsTheFastestMicroBatch) {
  TrainingRow row = shipped_row("titan-8b-h200-g64");
  row.plan.micro_batch.reset();
  row.plan.global_batch.reset();
  row.target = TargetRow{"tokens_per_s_per_gpu", 10753.0};
  const RowScenario open = scenario_of(row);
  ASSERT_TRUE(open.scenario) << open.reason;
  const Plan& plan = open.scenario->plan;
  EXPECT_EQ(plan.global_batch, plan.dp * plan.micro_batch);
  EXPECT_TRUE(any_says(open.filled_in, "micro_batch " + std::to_string(plan.micro_batch)));
  EXPECT_FALSE(any_says(open.filled_in, "micro_batch: 1"));
  const auto rate = [](const Scenario& scenario) {
    return static_cast<double>(scenario.plan.global_batch) / simulate_step(scenario).step.value();
  };
  const double best = rate(*open.scenario);
  for (const std::int64_t sequences : {1, 2, 4}) {
    row.plan.micro_batch = sequences;
    const RowScenario stated = scenario_of(row);
    ASSERT_TRUE(stated.scenario) << stated.reason;
    if (!fits(*stated.scenario, simulate_step(*stated.scenario))) continue;
    EXPECT_GE(best * kAnalyticError, rate(*stated.scenario)) << sequences;
  }
}

TEST(TunedPlan, KeepsWhatTheSourceNames) {
  TrainingRow row = left_open(llama_65b_row());
  row.plan.micro_batch = 2;
  row.plan.schedule = "1f1b";
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->plan.micro_batch, 2);
  EXPECT_EQ(result.scenario->plan.schedule, ScheduleKind::OneFOneB);
  EXPECT_EQ(result.scenario->plan.vpp, 1);
  const bool said = std::any_of(
      result.filled_in.begin(), result.filled_in.end(),
      [](const std::string& text) { return text.find("recompute") != std::string::npos; });
  EXPECT_TRUE(said);
}

// Recomputation of some layers stands between keeping all activations and keeping none.
TEST(TunedPlan, RecomputesNoMoreLayersThanMemoryAsksFor) {
  TrainingRow row = llama_65b_row();
  row.plan.recompute.clear();
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  Scenario scenario = *result.scenario;
  ASSERT_EQ(scenario.plan.recompute, RecomputePolicy::Full);
  ASSERT_GT(scenario.plan.recompute_layers, 1);
  EXPECT_TRUE(fits(scenario, simulate_step(scenario)));
  --scenario.plan.recompute_layers;
  EXPECT_FALSE(fits(scenario, simulate_step(scenario)));
}

TEST(TunedPlan, ShardsOptimizerStatesThatDoNotFitReplicated) {
  TrainingRow row = llama_65b_row();
  row.stack = "our own";
  row.plan.zero_stage.reset();
  row.plan.tp = 8;
  row.plan.pp = 1;
  row.plan.dp = row.cluster.gpus / 8;
  row.plan.recompute = "full";
  row.plan.micro_batch = 1;
  row.plan.virtual_pp.reset();
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  Scenario scenario = *result.scenario;
  EXPECT_GT(scenario.plan.zero_stage, 0);
  EXPECT_TRUE(fits(scenario, simulate_step(scenario)));
  scenario.plan.zero_stage = 0;
  EXPECT_FALSE(fits(scenario, simulate_step(scenario)));
}

TEST(TunedPlan, AnInterleavedScheduleHasVirtualStages) {
  TrainingRow row = llama_65b_row();
  row.plan.virtual_pp.reset();
  row.plan.micro_batch = 1;
  row.plan.schedule = "interleaved 1F1B";
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->plan.schedule, ScheduleKind::Interleaved);
  EXPECT_GE(result.scenario->plan.vpp, 2);
}

// Chunks that a source leaves open are those of the stack: of the pipelines of NVIDIA's stacks
// nearly all are interleaved, others have one chunk unless told otherwise.
TEST(TunedPlan, OpenVirtualStagesAreThoseOfTheStack) {
  TrainingRow row = llama_65b_row();
  row.plan.virtual_pp.reset();
  row.plan.schedule.clear();
  row.plan.micro_batch = 1;
  row.plan.recompute = "full";
  for (const char* stack : {"InternEvo", "Colossal-AI", "PaddleNLP", "fsdp2"}) {
    row.stack = stack;
    const RowScenario result = scenario_of(row);
    ASSERT_TRUE(result.scenario) << stack << ": " << result.reason;
    EXPECT_EQ(result.scenario->plan.vpp, 1) << stack;
    EXPECT_TRUE(any_says(result.filled_in, "schedule: 1f1b")) << stack;
  }
  for (const char* stack : {"Megatron-Core", "NeMo"}) {
    row.stack = stack;
    const RowScenario result = scenario_of(row);
    ASSERT_TRUE(result.scenario) << stack << ": " << result.reason;
    EXPECT_EQ(result.scenario->plan.schedule, ScheduleKind::Interleaved) << stack;
    EXPECT_LE(result.scenario->plan.vpp, 12) << stack;
  }
  row.stack = "InternEvo";
  row.notes = "interleaved pipeline";
  EXPECT_GT(scenario_of(row).scenario->plan.vpp, 1);
}

// 126 layers on 16 stages, as Llama 3 405B has them (arXiv 2407.21783, section 3.3.2).
TEST(TunedPlan, VirtualStagesMayCountEmbeddingAndHeadAsLayers) {
  TrainingRow row = left_open(llama_65b_row());
  row.stack = "our own Megatron-like (InternEvo)";
  row.model.layers = 126;
  row.cluster.gpus = 1024;
  row.plan.tp = 4;
  row.plan.pp = 16;
  row.plan.dp = 16;
  row.plan.global_batch = 1024;
  row.plan.zero_stage = 1;
  row.plan.schedule = "interleaved";
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  const Plan& plan = result.scenario->plan;
  EXPECT_TRUE(plan.embedding_counts_as_layer && plan.head_counts_as_layer);
  EXPECT_GE(plan.vpp, 2);
  EXPECT_EQ((126 + 2) % plan.chunks(), 0);
}

// Of the cuts that the row leaves open, none that is stated and fits is faster.
TEST(TunedPlan, AnOpenCutIsTheFastestThatFits) {
  TrainingRow row = llama_65b_row();
  row.plan.recompute = "full";
  row.plan.micro_batch = 1;
  row.plan.virtual_pp = 1;
  row.plan.schedule = "1f1b";
  TrainingRow open = row;
  open.plan.tp.reset();
  open.plan.pp.reset();
  open.plan.dp.reset();
  const RowScenario chosen = scenario_of(open);
  ASSERT_TRUE(chosen.scenario) << chosen.reason;
  const StepResult best = simulate_step(*chosen.scenario);
  EXPECT_TRUE(fits(*chosen.scenario, best));
  for (const auto& [tp, pp] : {std::pair{1, 8}, {2, 4}, {4, 2}, {8, 1}, {8, 2}}) {
    row.plan.tp = tp;
    row.plan.pp = pp;
    row.plan.dp = row.cluster.gpus / (tp * pp);
    const RowScenario stated = scenario_of(row);
    ASSERT_TRUE(stated.scenario) << stated.reason;
    const StepResult result = simulate_step(*stated.scenario);
    if (!fits(*stated.scenario, result)) continue;
    EXPECT_LE(best.step, result.step * kAnalyticError) << tp << " " << pp;
  }
}

// What ran did fit, so that a memory that is predicted too large says nothing of the schedule.
TEST(TunedPlan, AnInterleavedScheduleIsKeptWhereNothingFits) {
  TrainingRow row = llama_65b_row();
  row.cluster.gpu = "RTX 4090";
  row.plan.schedule = "interleaved";
  row.plan.virtual_pp.reset();
  row.plan.recompute = "none";
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  const Scenario& scenario = *result.scenario;
  EXPECT_NE(result.filled_in.back().find("nothing fits"), std::string::npos);
  ASSERT_EQ(scenario.plan.schedule, ScheduleKind::Interleaved);
  const StepResult chosen = simulate_step(scenario);
  for (const std::int64_t chunks : {2, 4, 5, 8, 10, 20, 40}) {
    row.plan.virtual_pp = chunks;
    const RowScenario stated = scenario_of(row);
    ASSERT_TRUE(stated.scenario) << stated.reason;
    const StepResult other = simulate_step(*stated.scenario);
    EXPECT_TRUE(chosen.step <= other.step * kAnalyticError ||
                chosen.memory().peak < other.memory().peak)
        << chunks;
  }
}

TEST(TunedPlan, WhatFitsNowhereIsTriedWithTheLeastMemory) {
  TrainingRow row = left_open(llama_65b_row());
  row.cluster.gpu = "RTX 4090";
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->plan.micro_batch, 1);
  EXPECT_EQ(result.scenario->plan.recompute, RecomputePolicy::Full);
  EXPECT_NE(result.filled_in.back().find("nothing fits"), std::string::npos);
}

// A plan chosen so as to fit would miss every such run by construction.
TEST(TunedPlan, WhatRanOutOfMemoryIsNotChosenToFit) {
  TrainingRow row = left_open(llama_65b_row());
  row.plan.zero_stage.reset();
  EXPECT_TRUE(scenario_of(row).chosen_to_fit);
  row.target.reset();
  row.measured = {};
  row.measured.oom = true;
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_FALSE(result.chosen_to_fit);
  EXPECT_EQ(result.scenario->plan.recompute, RecomputePolicy::None);
  EXPECT_EQ(result.scenario->plan.micro_batch, 1);
  EXPECT_EQ(result.scenario->plan.vpp, 1);
  EXPECT_TRUE(any_says(result.filled_in, "not tuned, as it does not fit"));
  EXPECT_FALSE(any_says(result.filled_in, "the fastest that fits"));
  row.plan.micro_batch = 4;
  row.plan.recompute = "full";
  EXPECT_EQ(scenario_of(row).scenario->plan.micro_batch, 4);
  EXPECT_EQ(scenario_of(row).scenario->plan.recompute, RecomputePolicy::Full);
}

TEST(TunedPlan, StatedPlansAreNotChosenToFit) {
  EXPECT_FALSE(scenario_of(llama_65b_row()).chosen_to_fit);
}

}  // namespace
}  // namespace shardwright::sim
