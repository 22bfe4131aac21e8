// How notes say that experts are spread over ranks.
#include "sim/validation/noted_experts.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/step/step_estimate.hpp"
#include "sim/validation/row_scenario.hpp"
#include "tests/sim/validation/shipped_rows.hpp"

namespace shardwright::sim {
namespace {

// GPT-OSS 120B, 128 experts, fully sharded over 64 H100.
TrainingRow sharded_row(const std::string& stack, const std::string& notes) {
  TrainingRow row;
  row.id = "sharded";
  row.source_year = 2025;
  row.model.name = "GPT-OSS 120B";
  row.model.seq_len = 4096;
  row.cluster.gpu = "H100-SXM5-80GB";
  row.cluster.gpus = 64;
  row.cluster.gpus_per_node = 8;
  row.plan.dp = 64;
  row.plan.tp = row.plan.pp = row.plan.cp = 1;
  row.plan.zero_stage = 3;
  row.plan.micro_batch = 2;
  row.plan.global_batch = 512;
  row.plan.recompute = "full";
  row.plan.precision = "bf16";
  row.stack = stack;
  row.target = TargetRow{"step_s", 10.0};
  row.notes = notes;
  return row;
}

Plan plan_for(const TrainingRow& row) {
  const RowScenario result = scenario_of(row);
  EXPECT_TRUE(result.scenario) << result.reason;
  return result.scenario ? result.scenario->plan : Plan{};
}

TEST(NotedExperts, ADegreeIsReadWhereTheFieldIsEmpty) {
  for (const char* stack : {"NeMo AutoModel", "fsdp2", "megatron-core"}) {
    for (const char* notes : {"FSDP 64, EP 32, TE + DeepEP", "EP=32", "EP32", "expert parallel 32",
                              "expert_model_parallel_size=32", "expert parallelism of 32",
                              "32-way EP", "ep_degree: 32"}) {
      const RowScenario result = scenario_of(sharded_row(stack, notes));
      ASSERT_TRUE(result.scenario) << notes << ": " << result.reason;
      EXPECT_EQ(result.scenario->plan.ep, 32) << stack << ": " << notes;
      EXPECT_TRUE(any_says(result.filled_in, "ep: 32, by the notes")) << stack << ": " << notes;
    }
  }
  TrainingRow stated = sharded_row("fsdp2", "EP 32");
  stated.plan.ep = 8;
  EXPECT_EQ(plan_for(stated).ep, 8);
}

TEST(NotedExperts, WhatNamesNoDegreeOfItsOwnIsNotRead) {
  for (const char* notes :
       {"ETP=2", "HybridEP 32", "Hybrid-EP 32", "EP 4/8", "EP 1.5", "no EP 32", "", "32 experts"}) {
    TrainingRow row = sharded_row("fsdp2", notes);
    row.model.moe = MoeRow{128, 4, 2880, 0, 0};
    std::vector<std::string> filled_in;
    complete_expert_parallel(row, filled_in);
    EXPECT_FALSE(row.plan.ep) << notes;
    EXPECT_TRUE(filled_in.empty()) << notes;
  }
  TrainingRow dense = sharded_row("fsdp2", "EP 32");
  dense.model.name = "Llama-3-8B";
  EXPECT_EQ(plan_for(dense).ep, 1);
}

// 128 ranks are not there, 12 divide neither ranks nor experts.
TEST(NotedExperts, ADegreeThatDoesNotAgreeIsListed) {
  for (const char* notes : {"EP 128", "EP 12", "EP 8 or EP 16"}) {
    const RowScenario result = scenario_of(sharded_row("fsdp2", notes));
    ASSERT_TRUE(result.scenario) << notes << ": " << result.reason;
    EXPECT_TRUE(any_says(result.filled_in, "not taken")) << notes;
    EXPECT_FALSE(any_says(result.filled_in, "by the notes")) << notes;
  }
  TrainingRow cut = sharded_row("megatron-core", "EP 64, ETP2");
  std::vector<std::string> filled_in;
  cut.model.moe = MoeRow{128, 4, 2880, 0, 0};
  complete_expert_parallel(cut, filled_in);
  EXPECT_FALSE(cut.plan.ep);
}

TEST(NotedExperts, ExchangesAreToldByTheirSoftware) {
  for (const char* notes :
       {"TE + DeepEP", "HybridEP", "all-to-all dispatcher", "All-to-All token dispatcher",
        "moe_token_dispatcher_type=alltoall", "dispatcher flex", "with expert parallelism"})
    EXPECT_TRUE(notes_say_tokens_exchanged(notes)) << notes;
  for (const char* notes : {"", "no DeepEP", "Ulysses all-to-all", "allgather dispatcher",
                            "no expert parallelism", "without an all-to-all dispatcher"})
    EXPECT_FALSE(notes_say_tokens_exchanged(notes)) << notes;
}

// Stacks that shard have whole experts on each rank unless tokens are exchanged; then the degree is
// the fastest that fits.
TEST(NotedExperts, WhereTokensAreExchangedTheDegreeIsTuned) {
  for (const char* stack : {"NeMo AutoModel", "megatron-core"}) {
    EXPECT_EQ(plan_for(sharded_row(stack, "")).ep, 1) << stack;
    EXPECT_EQ(plan_for(sharded_row(stack, "no DeepEP")).ep, 1) << stack;
    TrainingRow row = sharded_row(stack, "TE + DeepEP");
    const RowScenario open = scenario_of(row);
    ASSERT_TRUE(open.scenario) << open.reason;
    EXPECT_GT(open.scenario->plan.ep, 1) << stack;
    EXPECT_TRUE(any_says(open.filled_in, "the fastest cut that fits")) << stack;
    const StepEstimate tuned = estimate_step(*open.scenario);
    for (const std::int64_t ep : {1, 8, 64}) {
      row.plan.ep = ep;
      const RowScenario stated = scenario_of(row);
      ASSERT_TRUE(stated.scenario) << stated.reason;
      const StepEstimate estimate = estimate_step(*stated.scenario);
      if (estimate.memory > stated.scenario->cluster.accelerator.memory) continue;
      EXPECT_LE(tuned.analytic, estimate.analytic) << stack << ", ep " << ep;
    }
  }
}

}  // namespace
}  // namespace shardwright::sim
