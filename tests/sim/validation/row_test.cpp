// What becomes of published measurements.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "core/spec/plan_check.hpp"
#include "sim/validation/row_scenario.hpp"
#include "sim/validation/training_row.hpp"
#include "tests/sim/validation/shipped_rows.hpp"

namespace shardwright::sim {
namespace {

TEST(RowScenario, EveryShippedRowIsSimulatedOrSaysWhyNot) {
  std::size_t simulated = 0;
  const auto rows = read_training_rows(kShipped);
  for (const TrainingRow& row : rows) {
    const RowScenario result = scenario_of(row);
    EXPECT_NE(result.scenario.has_value(), !result.reason.empty()) << row.id;
    if (!result.scenario) continue;
    ++simulated;
    const Scenario& scenario = *result.scenario;
    EXPECT_EQ(scenario.plan.world_size(), row.cluster.gpus) << row.id;
    EXPECT_TRUE(broken_rules(scenario.model, &scenario.cluster, scenario.plan).empty()) << row.id;
  }
  EXPECT_GE(simulated, rows.size() * 9 / 10);
}

TEST(RowScenario, TakesLatentAttentionFromTheShippedModel) {
  const auto result =
      scenario_of(shipped_row("simumax-b200-deepseekv2-tp1-ep8-pp1-dp8-l4-mbc4-cef"));
  ASSERT_TRUE(result.scenario) << result.reason;
  const ModelSpec& model = result.scenario->model;
  EXPECT_EQ(model.attention.kind, AttentionKind::MultiHeadLatent);
  EXPECT_EQ(model.attention.kv_lora_rank, 512);
  EXPECT_EQ(model.layers, 4);
  EXPECT_EQ(model.moe->first_dense_layers, 1);
  EXPECT_TRUE(model.moe->balanced_routing);
}

TEST(RowScenario, RefusesWhatItCannotExpress) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.plan.precision = "mxfp4";
  EXPECT_NE(scenario_of(row).reason.find("mxfp4"), std::string::npos);
  row = shipped_row("sc21-t1-1.7b");
  row.cluster.gpu = "Abacus 3000";
  EXPECT_NE(scenario_of(row).reason.find("Abacus 3000"), std::string::npos);
  row = shipped_row("sc21-t1-1.7b");
  row.plan.dp = 31;
  EXPECT_FALSE(scenario_of(row).scenario.has_value());
}

TEST(RowScenario, SaysWhatItFilledIn) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.plan.zero_stage.reset();
  row.plan.micro_batch.reset();
  row.plan.recompute.clear();
  const auto filled = scenario_of(row).filled_in;
  const auto says_of = [&](const std::string& key) {
    return std::any_of(filled.begin(), filled.end(), [&](const std::string& each) {
      return each.find(key) != std::string::npos;
    });
  };
  EXPECT_TRUE(says_of("zero_stage"));
  EXPECT_TRUE(says_of("micro_batch"));
  EXPECT_TRUE(says_of("recompute"));
}

TEST(RowScenario, ADegreeThatIsLeftOpenFollowsFromTheOthers) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  const std::int64_t tp = *row.plan.tp;
  row.plan.tp.reset();
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->plan.tp, tp);
  EXPECT_TRUE(any_says(result.filled_in, "tp: 1, from the other degrees"));
}

TEST(RowScenario, StacksThatShardAreNotCutUnlessTheRowSaysSo) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.stack = "XTuner";
  row.plan.tp.reset();
  row.plan.pp.reset();
  row.plan.zero_stage.reset();
  row.plan.global_batch.reset();
  row.plan.micro_batch = 2;
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  const Plan& plan = result.scenario->plan;
  EXPECT_EQ(plan.tp * plan.pp, 1);
  EXPECT_EQ(plan.zero_stage, 3);
  EXPECT_EQ(plan.global_batch, 2 * plan.dp);
  EXPECT_EQ(result.scenario->stack.name, "generic-pytorch");
}

TEST(RowScenario, SaysWhichScheduleItTookForAnUnknownOne) {
  TrainingRow row = shipped_row("sc21-t1-145.6b");
  ASSERT_GT(*row.plan.pp, 1);
  row.plan.virtual_pp = 1;
  row.plan.schedule = "hanayo";
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_TRUE(any_says(result.filled_in, "schedule: 1f1b for \"hanayo\""));
  row.plan.schedule = "1F1B";
  EXPECT_FALSE(any_says(scenario_of(row).filled_in, "schedule"));
}

TEST(RowScenario, UnknownRecomputationIsLeftOpen) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.plan.recompute = "some of it";
  EXPECT_TRUE(any_says(scenario_of(row).filled_in, "for \"some of it\": the fastest that fits"));
}

TEST(RowScenario, SizesMayComeFromTheModelsName) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.model = ModelRow{};
  row.model.name = "Llama-3 8B";
  row.model.seq_len = 4096;
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->model.layers, 32);
  EXPECT_EQ(result.scenario->model.mlp.ffn_hidden, 14336);
  EXPECT_EQ(result.scenario->model.vocab, 128256);
  EXPECT_TRUE(any_says(result.filled_in, "as the shipped llama3-8b"));
}

TEST(RowScenario, ModelsAreKnownByTheNamesOfTheirWeights) {
  for (const auto& [name, layers, hidden] : {std::tuple{"meta-llama/Meta-Llama-3-8B", 32, 4096},
                                             {"Llama-2-7b-hf", 32, 4096},
                                             {"meta-llama/Llama-2-70b-chat-hf", 80, 8192}}) {
    TrainingRow row = shipped_row("sc21-t1-1.7b");
    row.model = ModelRow{};
    row.model.name = name;
    row.model.seq_len = 4096;
    const RowScenario result = scenario_of(row);
    ASSERT_TRUE(result.scenario) << name << ": " << result.reason;
    EXPECT_EQ(result.scenario->model.layers, layers) << name;
    EXPECT_EQ(result.scenario->model.hidden, hidden) << name;
  }
}

// 4 h for a GPT (arXiv 2005.14165, table 2.1), 11008 for LLaMA-7B (arXiv 2302.13971).
TEST(RowScenario, WidthsFollowFromTheHiddenSize) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.model.ffn_hidden.reset();
  EXPECT_EQ(scenario_of(row).scenario->model.mlp.ffn_hidden, 4 * *row.model.hidden);
  row.model.name = "a LLaMA";
  row.model.gated_mlp = true;
  row.model.hidden = 4096;
  row.model.heads = row.model.kv_heads = 32;
  row.model.head_dim = 128;
  EXPECT_EQ(scenario_of(row).scenario->model.mlp.ffn_hidden, 11008);
}

TEST(RowScenario, ReplicasThatTakeAllAcceleratorsLeaveNoCut) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.plan.tp.reset();
  row.plan.pp.reset();
  ASSERT_EQ(row.plan.dp, row.cluster.gpus);
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->plan.tp * result.scenario->plan.pp, 1);
}

TEST(RowScenario, MixedPrecisionIsWhatTheAcceleratorHas) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.plan.precision = "amp";
  EXPECT_EQ(scenario_of(row).scenario->plan.precision, Precision::Bf16);
  row.cluster.gpu = "V100-SXM2-32GB";
  row.plan.precision = "mixed";
  EXPECT_EQ(scenario_of(row).scenario->plan.precision, Precision::Fp16);
  row.plan.precision = "AMP (dtype unknown)";
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->plan.precision, Precision::Fp16);
  EXPECT_TRUE(any_says(result.filled_in, "precision: fp16 for \"AMP (dtype unknown)\""));
}

// A row of experts whose notes are at the test's choice.
TrainingRow row_with_notes(const std::string& notes) {
  TrainingRow row = shipped_row("simumax-b200-deepseekv2-tp1-ep8-pp1-dp8-l4-mbc4-cef");
  row.stack = "nemo-te";
  row.notes = notes;
  return row;
}

TEST(RowScenario, WhatNotesChangeIsSaid) {
  const Scenario plain = *scenario_of(row_with_notes("")).scenario;
  EXPECT_FALSE(any_says(scenario_of(row_with_notes("")).filled_in, "by the notes"));
  for (const char* notes :
       {"DeepEP", "force-balanced", "capacity factor 1", "HSDP", "CUDA graphs full_iteration",
        "partial CG", "optimizer states offloaded to CPU", "activation offload"}) {
    const RowScenario result = scenario_of(row_with_notes(notes));
    ASSERT_TRUE(result.scenario) << notes << ": " << result.reason;
    EXPECT_FALSE(*result.scenario == plain) << notes;
    EXPECT_TRUE(any_says(result.filled_in, "by the notes")) << notes;
  }
}

TEST(RowScenario, WhatNotesDenyChangesNothing) {
  const Scenario plain = *scenario_of(row_with_notes("")).scenario;
  for (const char* notes :
       {"no DeepEP; NCCL all-to-all", "HybridEP off", "router not force-balanced", "EP overlap off",
        "no 1F1B overlap of all-to-all", "dropless: no token dropping",
        "no capacity factor (dropless)", "no CUDA graphs full_iteration", "no HSDP", "BETP12",
        "no optimizer offload"}) {
    const RowScenario result = scenario_of(row_with_notes(notes));
    ASSERT_TRUE(result.scenario) << notes << ": " << result.reason;
    EXPECT_TRUE(*result.scenario == plain) << notes;
    EXPECT_FALSE(any_says(result.filled_in, "by the notes")) << notes;
  }
}

TEST(RowScenario, WhatNotesNameAndNothingSimulatesIsSaid) {
  const Scenario plain = *scenario_of(row_with_notes("")).scenario;
  for (const char* notes : {"activation offload ratio 0.5", "optimizer offload fraction 0.5"}) {
    const RowScenario result = scenario_of(row_with_notes(notes));
    ASSERT_TRUE(result.scenario) << notes << ": " << result.reason;
    EXPECT_TRUE(*result.scenario == plain) << notes;
    EXPECT_TRUE(any_says(result.filled_in, "by the notes: not simulated")) << notes;
  }
}

// Their steps have no weight gradients of the model.
TEST(RowScenario, LowRankAdaptersAreNoTrainingOfAllWeights) {
  const auto reason = [](const auto& change) {
    TrainingRow row = row_with_notes("");
    change(row);
    return scenario_of(row).reason;
  };
  const std::string expected = "LoRA: ";
  EXPECT_EQ(reason([](auto& row) { row.notes = "LoRA rank 16"; }).substr(0, 6), expected);
  EXPECT_EQ(reason([](auto& row) { row.notes = "fine-tuned with PEFT"; }).substr(0, 6), expected);
  EXPECT_EQ(reason([](auto& row) { row.model.name += " (QLoRA)"; }).substr(0, 6), expected);
  EXPECT_EQ(reason([](auto& row) { row.stack = "NeMo LoRA"; }).substr(0, 6), expected);
  EXPECT_EQ(reason([](auto& row) { row.notes = "no LoRA, all weights"; }), "");
  EXPECT_EQ(reason([](auto& row) { row.notes = "q_lora_rank 1536, kv_lora_rank 512"; }), "");
}

TEST(RowScenario, OffloadIsThatOfTheNotes) {
  TrainingRow row = row_with_notes("optimizer states offloaded to CPU, activation offload");
  const Plan plan = scenario_of(row).scenario->plan;
  EXPECT_EQ(plan.offload_optimizer, OptimizerOffload::Host);
  EXPECT_TRUE(plan.offload_activations);
  row.plan.recompute = "";  // in place of which the activations wait on the host
  EXPECT_EQ(scenario_of(row).scenario->plan.recompute, RecomputePolicy::None);
  row.plan.recompute = "full";
  const RowScenario recomputed = scenario_of(row);
  ASSERT_TRUE(recomputed.scenario) << recomputed.reason;
  EXPECT_FALSE(recomputed.scenario->plan.offload_activations);
  EXPECT_TRUE(any_says(recomputed.filled_in, "on the host, by the notes: not simulated"));
}

// Dropout belongs to the trainer: the same shape drops in Megatron-LM and not in PyTorch's
// trainers. Llamas drop nowhere.
TEST(RowScenario, DropoutIsThatOfTheTrainer) {
  TrainingRow row = shipped_row("zerobubble-14p6B-g16-m48-1f1b");
  const RowScenario megatron = scenario_of(row);
  ASSERT_TRUE(megatron.scenario) << megatron.reason;
  EXPECT_DOUBLE_EQ(megatron.scenario->model.dropout, 0.1);
  TrainingRow other = row;
  other.stack = "fsdp1";
  const RowScenario pytorch = scenario_of(other);
  ASSERT_TRUE(pytorch.scenario) << pytorch.reason;
  EXPECT_DOUBLE_EQ(pytorch.scenario->model.dropout, 0.0);
  EXPECT_TRUE(any_says(pytorch.filled_in, "dropout: 0, the usual one of fsdp1"));
  row.model.gated_mlp = true;
  EXPECT_DOUBLE_EQ(scenario_of(row).scenario->model.dropout, 0.0);
  const RowScenario foundry =
      scenario_of(shipped_row("foundry-mpt7b-h10080gb-g8-s4096-mb16-bf16-ac-full"));
  ASSERT_TRUE(foundry.scenario) << foundry.reason;
  EXPECT_DOUBLE_EQ(foundry.scenario->model.dropout, 0.0);
}

// FSDP2 gathers once a step where a pipeline runs several microbatches.
TEST(RowScenario, FsdpKeepsParametersGatheredInAPipeline) {
  TrainingRow row = shipped_row("titan-70b-g256-2d");
  ASSERT_EQ(row.plan.pp, 1);
  EXPECT_EQ(scenario_of(row).scenario->plan.zero_stage, 3);
  row.plan.pp = 2;
  row.plan.dp = *row.plan.dp / 2;
  row.plan.micro_batch = 1;
  const RowScenario piped = scenario_of(row);
  ASSERT_TRUE(piped.scenario) << piped.reason;
  EXPECT_EQ(piped.scenario->plan.zero_stage, 1);
  EXPECT_TRUE(any_says(piped.filled_in, "zero_stage: 1 for 3"));
}

}  // namespace
}  // namespace shardwright::sim
