// What notes say of a plan and its optimizer where the fields are empty.
#include "sim/validation/noted_plan.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "sim/validation/row_scenario.hpp"
#include "tests/sim/validation/shipped_rows.hpp"

namespace shardwright::sim {
namespace {

// Llama 2 13B on 32 A100, sharded over all of them.
TrainingRow open_row(const char* notes) {
  TrainingRow row;
  row.id = "open";
  row.source_year = 2024;
  row.model.name = "Llama-2-13B";
  row.model.seq_len = 8192;
  row.cluster.gpu = "A100-SXM4-80GB";
  row.cluster.gpus = 32;
  row.plan.zero_stage = 3;
  row.plan.micro_batch = 1;
  row.plan.global_batch = 64;
  row.plan.precision = "bf16";
  row.stack = "DeepSpeed";
  row.target = TargetRow{"step_s", 10.0};
  row.notes = notes;
  return row;
}

std::string recompute(const char* notes) {
  TrainingRow row = open_row(notes);
  std::vector<std::string> filled_in;
  complete_plan(row, filled_in);
  EXPECT_EQ(any_says(filled_in, "by the notes"), !row.plan.recompute.empty()) << notes;
  return row.plan.recompute;
}

TEST(NotedPlan, RecomputationIsReadFromNotes) {
  for (const char* notes :
       {"activation checkpointing enabled", "with gradient checkpointing",
        "gradient checkpointing on", "full activation recomputation", "recompute_granularity=full",
        "ZeRO-3, activation checkpointing, bf16", "full AC", "activation recompute: full",
        "--recompute-granularity full --recompute-method uniform", "checkpoint_activations=True",
        "activations are recomputed"})
    EXPECT_EQ(recompute(notes), "full") << notes;
  for (const char* notes :
       {"selective activation recomputation", "selective AC", "recompute granularity selective",
        "remat policy: minimal", "--recompute-activations"})
    EXPECT_EQ(recompute(notes), "selective") << notes;
  for (const char* notes :
       {"no activation checkpointing", "without recomputation", "gradient checkpointing off",
        "activation recomputation was not used", "no AC", "AC off"})
    EXPECT_EQ(recompute(notes), "none") << notes;
}

TEST(NotedPlan, APartOfTheLayersIsReadFromNotes) {
  const auto layers = [](const char* notes) {
    const RowScenario result = scenario_of(open_row(notes));
    EXPECT_TRUE(result.scenario) << result.reason;
    EXPECT_TRUE(any_says(result.filled_in, "by the notes")) << notes;
    EXPECT_EQ(result.scenario->plan.recompute, RecomputePolicy::Full) << notes;
    return result.scenario->plan.recompute_layers;
  };
  EXPECT_EQ(layers("ZeRO-3; full recompute except the last 4 layers; bf16"), 36);
  EXPECT_EQ(layers("recompute 16 of 40 layers"), 16);
  EXPECT_EQ(layers("activation checkpointing on half of the layers. MFU 40%"), 20);
  EXPECT_EQ(layers("full recomputation (last 8 layers excluded)"), 32);
}

TEST(NotedPlan, NotesThatLeaveRecomputationOpenAreNotRead) {
  for (const char* notes :
       {"", "recompute unknown", "Micro-batch and recompute not given",
        "overlaps and recompute are recipe defaults (not read)", "dp recomputed from GPUs",
        "activation recompute setting unknown", "MFU without recomputation",
        "MFU counts no recompute", "no recompute counted", "checkpointing of weights every hour",
        "asynchronous checkpointing enabled", "activation checkpointing where needed",
        "selective and full recomputation, selective recomputation", "full accuracy"})
    EXPECT_EQ(recompute(notes), "") << notes;
}

// As long as a line may be.
TEST(NotedPlan, LongNotesAreReadInTime) {
  for (const char* part : {"a", "recompute", "no recompute full ", "cp", "9", " ", "offload ", ";",
                           "activation ", "no full recomputation "}) {
    std::string notes = "capacity factor 9";
    while (notes.size() < 100000) notes += part;
    TrainingRow row = open_row(notes.c_str());
    row.model.name = "Mixtral-8x7B";
    const RowScenario result = scenario_of(row);
    EXPECT_NE(result.scenario.has_value(), !result.reason.empty()) << part;
  }
}

TEST(NotedPlan, AStatedFieldIsKept) {
  TrainingRow row = open_row("full recomputation, no sequence parallelism, CP2");
  row.plan.recompute = "none";
  row.plan.sequence_parallel = true;
  row.plan.cp = 4;
  const TrainingRow stated = row;
  std::vector<std::string> filled_in;
  complete_plan(row, filled_in);
  EXPECT_EQ(row, stated);
  EXPECT_TRUE(filled_in.empty());
}

TEST(NotedPlan, SequenceParallelismIsReadFromNotes) {
  const auto sequence_parallel = [](const char* notes) {
    TrainingRow row = open_row(notes);
    std::vector<std::string> filled_in;
    complete_plan(row, filled_in);
    return row.plan.sequence_parallel;
  };
  EXPECT_EQ(sequence_parallel("no sequence parallelism"), false);
  EXPECT_EQ(sequence_parallel("sequence_parallel=False"), false);
  EXPECT_EQ(sequence_parallel("sequence parallelism enabled"), true);
  for (const char* notes :
       {"sequence_parallel not a column of this sheet",
        "whether sequence parallelism is on is not said", "Ulysses sequence parallelism on"})
    EXPECT_EQ(sequence_parallel(notes), std::nullopt) << notes;
}

TEST(NotedPlan, ContextDegreesAreThoseOfTheNotesWhereTheyFit) {
  for (const auto& [notes, cp] : {std::pair{"context parallel degree 2", 2},
                                  {"TP1 PP1 CP4", 4},
                                  {"CP degree 2", 2},
                                  {"2-way context parallelism", 2},
                                  {"CP=8", 8},
                                  {"Ulysses sequence parallel degree 8", 8},
                                  {"SP=4 (Ulysses)", 4},
                                  {"sequence parallel degree 8", 1},
                                  {"no context parallelism", 1}}) {
    const RowScenario result = scenario_of(open_row(notes));
    ASSERT_TRUE(result.scenario) << notes << ": " << result.reason;
    EXPECT_EQ(result.scenario->plan.cp, cp) << notes;
    EXPECT_EQ(result.scenario->plan.dp, 32 / cp) << notes;
    EXPECT_EQ(any_says(result.filled_in, "by the notes"), cp > 1) << notes;
  }
  const RowScenario other = scenario_of(open_row("CP=3"));
  ASSERT_TRUE(other.scenario) << other.reason;
  EXPECT_EQ(other.scenario->plan.cp, 1);
  EXPECT_TRUE(any_says(other.filled_in, "cp 3 of the notes does not agree"));
}

TEST(NotedPlan, TheKindOfContextParallelismIsRead) {
  const auto kind = [](const char* stack, const char* notes) {
    TrainingRow row = open_row(notes);
    row.stack = stack;
    row.plan.cp = 8;
    const RowScenario result = scenario_of(row);
    EXPECT_TRUE(result.scenario) << result.reason;
    EXPECT_TRUE(any_says(result.filled_in, "context_parallel: ")) << stack << notes;
    return result.scenario->plan.context_parallel;
  };
  EXPECT_EQ(kind("DeepSpeed-Ulysses", ""), ContextParallelKind::Ulysses);
  EXPECT_EQ(kind("Megatron-Core", "cp_comm_type=a2a"), ContextParallelKind::Ulysses);
  EXPECT_EQ(kind("FSDP2", "ring attention"), ContextParallelKind::Ring);
  TrainingRow row = open_row("Ulysses was not used");
  row.plan.cp = 8;
  EXPECT_EQ(scenario_of(row).scenario->plan.context_parallel, ContextParallelKind::Ring);
  // 40 heads for 16 ranks.
  row = open_row("Ulysses");
  row.plan.cp = 16;
  const RowScenario uneven = scenario_of(row);
  ASSERT_TRUE(uneven.scenario) << uneven.reason;
  EXPECT_EQ(uneven.scenario->plan.context_parallel, ContextParallelKind::Ring);
  EXPECT_TRUE(any_says(uneven.filled_in, "ring for ulysses"));
}

TEST(NotedPlan, OffloadInAnyWordsIsSimulatedOrListed) {
  for (const char* notes :
       {"CPU offload", "DeepSpeedCPUAdam", "offloading optimizer states", "ZeRO-3 with CPU offload",
        "offload_optimizer device cpu", "FSDP cpu offload (offload_params=True)",
        "optimizer and parameter offload to CPU", "offloads optimizer states and parameters",
        "offloading parameters and optimizer states",
        "parameters, gradients and optimizer states are offloaded",
        "optimizer/parameter offload"}) {
    const RowScenario result = scenario_of(open_row(notes));
    ASSERT_TRUE(result.scenario) << notes << ": " << result.reason;
    EXPECT_EQ(result.scenario->plan.offload_optimizer, OptimizerOffload::Host) << notes;
  }
  for (const char* notes :
       {"no CPU offload", "activations offloaded to CPU", "activation CPU offloading of 20 layers"})
    EXPECT_EQ(scenario_of(open_row(notes)).scenario->plan.offload_optimizer, OptimizerOffload::None)
        << notes;
  for (const char* notes :
       {"CPU offload, offload_params=True", "optimizer and parameter offload to CPU",
        "offloads optimizer states and parameters",
        "optimizer states and weights are both offloaded"})
    EXPECT_TRUE(any_says(scenario_of(open_row(notes)).filled_in,
                         "parameters on the host, by the notes: not simulated"))
        << notes;
  EXPECT_FALSE(any_says(scenario_of(open_row("no optimizer and parameter offload")).filled_in,
                        "on the host"));
  EXPECT_FALSE(scenario_of(open_row("no optimizer or activation offload"))
                   .scenario->plan.offload_activations);
  EXPECT_TRUE(scenario_of(open_row("offloads optimizer states and activations"))
                  .scenario->plan.offload_activations);
}

TEST(NotedOptimizer, StatesAreThoseOfTheOptimizer) {
  const auto bytes = [](const char* notes) {
    return scenario_of(open_row(notes)).scenario->stack.memory.optimizer_state_bytes.value();
  };
  EXPECT_EQ(bytes("8-bit Adam (bitsandbytes)"), 2.0);
  EXPECT_EQ(bytes("paged_adamw_8bit"), 2.0);
  EXPECT_EQ(bytes("PagedAdamW8bit"), 2.0);
  EXPECT_EQ(bytes("adamw_bnb_8bit"), 2.0);
  EXPECT_EQ(bytes("bf16 Adam states"), 4.0);
  EXPECT_EQ(bytes("Adafactor optimizer"), 0.0);
  EXPECT_EQ(bytes("SGD optimizer"), 0.0);
  EXPECT_EQ(bytes("SGD optimizer with momentum"), 4.0);
  EXPECT_EQ(bytes("Lion optimizer"), 4.0);
  EXPECT_EQ(bytes("optimizer states in bf16"), 4.0);
  for (const char* notes : {"", "AdamW", "no 8-bit Adam", "BF16 optimizer with fp32 accumulation"})
    EXPECT_EQ(bytes(notes), 8.0) << notes;
  const RowScenario paged = scenario_of(open_row("PagedAdamW8bit"));
  EXPECT_TRUE(any_says(paged.filled_in, "8-bit Adam, 2 bytes of states a parameter, by the notes"));
  EXPECT_TRUE(any_says(paged.filled_in, "paged to the host, by the notes: not simulated"));
  const StackSpec pure = scenario_of(open_row("pure bf16")).scenario->stack;
  EXPECT_EQ(pure.memory.master_weight_bytes.value(), 0.0);
  EXPECT_FALSE(pure.gradients.fp32_accumulation);
}

TEST(NotedPlan, TheCapacityFactorIsTheNumberOfTheNotes) {
  const auto moe = [](const char* notes) {
    TrainingRow row = open_row(notes);
    row.model.name = "Mixtral-8x7B";
    return *scenario_of(row).scenario->model.moe;
  };
  EXPECT_EQ(moe("capacity factor 1.25").capacity_factor, 1.25);
  EXPECT_EQ(moe("Capacity-factor-1.0 token drop").capacity_factor, 1.0);
  EXPECT_EQ(moe("capacity factor of 2").capacity_factor, 2.0);
  EXPECT_EQ(moe("moe_expert_capacity_factor=4").capacity_factor, 4.0);
  EXPECT_EQ(moe("token-drop").capacity_factor, 1.0);
  EXPECT_EQ(moe("capacity factor -1 (dropless)").capacity_factor, 0.0);
  EXPECT_EQ(moe("no capacity factor").capacity_factor, 0.0);
}

}  // namespace
}  // namespace shardwright::sim
