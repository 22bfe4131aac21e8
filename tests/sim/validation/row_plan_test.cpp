// Degrees, batches and overlaps that sources state in part or in words of their own.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>

#include "sim/step/simulate.hpp"
#include "sim/validation/row_scenario.hpp"
#include "sim/validation/training_row.hpp"
#include "tests/sim/validation/shipped_rows.hpp"

namespace shardwright::sim {
namespace {

using Degree = std::optional<std::int64_t>;

// Llama 2 13B by name on 64 H100, tp 2 and pp 2.
TrainingRow llama_row() {
  TrainingRow row;
  row.id = "llama";
  row.source_year = 2024;
  row.model.name = "Llama-2-13B";
  row.model.seq_len = 4096;
  row.cluster.gpu = "H100";
  row.cluster.gpus = 64;
  row.plan.tp = row.plan.pp = 2;
  row.plan.dp = 16;
  row.plan.micro_batch = 1;
  row.plan.global_batch = 256;
  row.plan.precision = "bf16";
  row.plan.recompute = "none";
  row.plan.schedule = "1f1b";
  row.stack = "Megatron-Core";
  row.target = TargetRow{"step_s", 3.0};
  return row;
}

TEST(RowPlan, TheOneDegreeThatIsLeftOpenFollowsFromTheAccelerators) {
  const auto degrees = [](Degree dp, Degree tp, Degree pp, Degree cp) {
    TrainingRow row = llama_row();
    row.plan.dp = dp;
    row.plan.tp = tp;
    row.plan.pp = pp;
    row.plan.cp = cp;
    const RowScenario result = scenario_of(row);
    EXPECT_TRUE(result.scenario) << result.reason;
    if (!result.scenario)
      return std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>();
    EXPECT_TRUE(any_says(result.filled_in, "from the other degrees") || !dp);
    const Plan& plan = result.scenario->plan;
    return std::tuple(plan.dp, plan.tp, plan.pp, plan.cp);
  };
  const auto all = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>(8, 2, 2, 2);
  EXPECT_EQ(degrees(8, 2, 2, std::nullopt), all);
  EXPECT_EQ(degrees(8, 2, std::nullopt, 2), all);
  EXPECT_EQ(degrees(8, std::nullopt, 2, 2), all);
  EXPECT_EQ(degrees(std::nullopt, 2, 2, 2), all);
}

TEST(RowPlan, ReplicasThatCountContextRanksAreCountedAnew) {
  TrainingRow row = llama_row();
  row.plan.cp = 2;
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->plan.dp, 8);
  EXPECT_TRUE(any_says(result.filled_in, "dp: 8, as its 16 count cp in"));
  row.plan.dp = 8;
  EXPECT_FALSE(any_says(scenario_of(row).filled_in, "count cp in"));
  row.plan.dp = 12;
  EXPECT_FALSE(scenario_of(row).scenario);
}

TEST(RowPlan, ExpertRanksThatStandBesideTheReplicasAreCountedIn) {
  TrainingRow row = llama_row();
  row.model.name = "Mixtral-8x7B";
  row.plan.dp = 2;
  row.plan.ep = 8;
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->plan.dp, 16);
  EXPECT_EQ(result.scenario->plan.cp, 1);
  EXPECT_TRUE(any_says(result.filled_in, "dp: 16, as its 2 leave out ep"));
}

// As torchtitan's sources have it: no word of tensor and pipeline ranks.
TEST(RowPlan, ContextAndExpertRanksAreCountedWhereNothingIsSaidOfOtherCuts) {
  TrainingRow row = llama_row();
  row.stack = "FSDP2";
  row.plan.tp.reset();
  row.plan.pp.reset();
  row.plan.dp = 64;
  row.plan.cp = 4;
  EXPECT_TRUE(any_says(scenario_of(row).filled_in, "dp: 16, as its 64 count cp in"));
  row.model.name = "Mixtral-8x7B";
  row.plan.cp.reset();
  row.plan.dp = row.plan.ep = 8;
  EXPECT_TRUE(any_says(scenario_of(row).filled_in, "dp: 64, as its 8 leave out ep"));
}

TEST(RowPlan, SoftwareWithoutContextParallelismHasNone) {
  TrainingRow row = llama_row();
  row.plan.dp = 8;
  EXPECT_TRUE(any_says(scenario_of(row).filled_in, "cp: 2, from the other degrees"));
  row.cluster.gpu = "V100";
  EXPECT_FALSE(scenario_of(row).scenario);
}

TEST(RowPlan, ExpertsAreSpreadAsFastestWhereNothingTells) {
  TrainingRow row = llama_row();
  row.model.name = "Mixtral-8x7B";
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_TRUE(any_says(result.filled_in,
                       fmt::format("ep {}: the fastest cut that fits", result.scenario->plan.ep)));
  EXPECT_GT(result.scenario->plan.ep, 1);
  row.stack = "FSDP2";
  EXPECT_EQ(scenario_of(row).scenario->plan.ep, 1);
}

// 256 sequences of 4,096 tokens in 3 s on 64 GPUs are 5,461 tokens a second each.
TEST(RowPlan, TheBatchFollowsFromTheStepAndARate) {
  TrainingRow row = llama_row();
  row.plan.global_batch.reset();
  EXPECT_NE(scenario_of(row).reason.find("global batch"), std::string::npos);
  row.measured.tokens_per_s_per_gpu = 5461.0;
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->plan.global_batch, 256);
  EXPECT_TRUE(any_says(result.filled_in, "global_batch: 256, by the step's time and its tokens"));
  // Rates count FLOP by some convention, which leaves a few per cent open.
  row.measured.tokens_per_s_per_gpu.reset();
  row.measured.tflops_per_gpu = 6.0 * 13.0e9 * 4096 * 256 / 3.0 / 64 / 1e12;
  const RowScenario counted = scenario_of(row);
  ASSERT_TRUE(counted.scenario) << counted.reason;
  EXPECT_NEAR(counted.scenario->plan.global_batch, 256, 32);
  EXPECT_EQ(counted.scenario->plan.global_batch % 16, 0);
  EXPECT_TRUE(any_says(counted.filled_in, "by the step's time and its TFLOP/s"));
}

// Nothing that is filled in may make a row impossible to simulate.
TEST(RowPlan, OpenPrecisionIsOneThatTheAcceleratorHas) {
  for (const auto& [gpu, precision] : {std::pair{"V100-SXM2-32GB", Precision::Fp16},
                                       {"NVIDIA Volta", Precision::Fp16},
                                       {"p3dn.24xlarge", Precision::Fp16},
                                       {"DGX-2", Precision::Fp16},
                                       {"Hopper", Precision::Bf16}}) {
    TrainingRow row = llama_row();
    row.cluster.gpu = gpu;
    row.plan.precision.clear();
    const RowScenario result = scenario_of(row);
    ASSERT_TRUE(result.scenario) << gpu << ": " << result.reason;
    EXPECT_EQ(result.scenario->plan.precision, precision) << gpu;
  }
}

// Attention and feed-forward share their norm, and the sums after them.
TEST(RowPlan, AParallelBlockOfTheNotesIsSimulated) {
  TrainingRow row = llama_row();
  row.notes = "";
  const Seconds usual = simulate_step(*scenario_of(row).scenario).step;
  for (const char* notes : {"parallel transformer block",
                            "LAMB; parallel attention and MLP (GPT-J)", "uses parallel attn/ffn"}) {
    row.notes = notes;
    const RowScenario result = scenario_of(row);
    ASSERT_TRUE(result.scenario) << result.reason;
    EXPECT_TRUE(any_says(result.filled_in, "in parallel, by the notes")) << notes;
    EXPECT_LT(simulate_step(*result.scenario).step, usual) << notes;
  }
  for (const char* notes : {"tensor-parallel transformer blocks", "no parallel transformer block",
                            "context parallel attention and MLP recomputation"}) {
    row.notes = notes;
    EXPECT_FALSE(any_says(scenario_of(row).filled_in, "in parallel, by the notes")) << notes;
  }
}

TEST(RowPlan, ABatchThatIsRoundedIsTheNearestThatDivides) {
  TrainingRow row = llama_row();
  row.plan.micro_batch = 2;
  row.plan.global_batch = 3202;
  const RowScenario rounded = scenario_of(row);
  ASSERT_TRUE(rounded.scenario) << rounded.reason;
  EXPECT_EQ(rounded.scenario->plan.global_batch, 3200);
  EXPECT_TRUE(any_says(rounded.filled_in, "global_batch: 3200 in place of 3202"));
  row.plan.global_batch = 250;  // off by more than a rounding
  EXPECT_FALSE(scenario_of(row).scenario);
}

TEST(RowPlan, ARateAloneNeedsNoBatch) {
  TrainingRow row = llama_row();
  row.target = TargetRow{"tokens_per_s_per_gpu", 5461.0};
  row.plan.global_batch.reset();
  row.plan.micro_batch.reset();
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->plan.micro_batch, 1);
  EXPECT_TRUE(any_says(result.filled_in, "micro_batch: 1"));
  EXPECT_TRUE(any_says(result.filled_in, "global_batch: "));
}

// Whatever is sharded between steps: gradients are reduced after the last microbatch, parameters
// gathered before the first (Llama 3, arXiv 2407.21783, section 3.3.2).
TEST(RowPlan, PipelinesRunTheirMicrobatchesWithWholeGradientsAndParameters) {
  for (const char* stack : {"Megatron-Core", "InternEvo", "FSDP2", "DeepSpeed", "our own"}) {
    TrainingRow row = llama_row();
    row.stack = stack;
    for (const std::int64_t stage : {0, 1, 2, 3}) {
      row.plan.zero_stage = stage;
      const RowScenario result = scenario_of(row);
      ASSERT_TRUE(result.scenario) << stack << ": " << result.reason;
      EXPECT_EQ(result.scenario->plan.zero_stage, std::min<std::int64_t>(stage, 1)) << stack;
      EXPECT_EQ(any_says(result.filled_in, fmt::format("zero_stage: 1 for {}", stage)), stage > 1)
          << stack;
    }
  }
  TrainingRow row = llama_row();
  row.plan.pp = 1;
  row.plan.dp = 32;
  row.plan.zero_stage = 2;
  EXPECT_EQ(scenario_of(row).scenario->plan.zero_stage, 2);
}

TEST(RowPlan, SchedulesHaveTheChunksOfTheirConstruction) {
  TrainingRow row = llama_row();
  row.plan.schedule = "ZB-V";
  for (const Degree chunks : {Degree(), Degree(1), Degree(2)}) {
    row.plan.virtual_pp = chunks;
    const RowScenario result = scenario_of(row);
    ASSERT_TRUE(result.scenario) << result.reason;
    EXPECT_EQ(result.scenario->plan.vpp, 2);
    EXPECT_EQ(any_says(result.filled_in, "virtual_pp: 2, as zb-v has it"), chunks != Degree(2));
  }
  row.plan.schedule = "DualPipe";
  for (const Degree chunks : {Degree(), Degree(1), Degree(2)}) {
    row.plan.virtual_pp = chunks;
    const RowScenario result = scenario_of(row);
    ASSERT_TRUE(result.scenario) << result.reason;
    EXPECT_EQ(result.scenario->plan.vpp, 1);
    EXPECT_EQ(any_says(result.filled_in, "virtual_pp: 1, as dualpipe has it"), chunks == Degree(2));
  }
}

TrainingRow deepseek_row(const char* stack) {
  TrainingRow row = llama_row();
  row.model.name = "DeepSeek-V3";
  row.cluster.gpu = "H800";
  row.cluster.gpus = 2048;
  row.plan = PlanRow{};
  row.plan.tp = 1;
  row.plan.pp = 16;
  row.plan.ep = 64;
  row.plan.global_batch = 15360;
  row.plan.precision = "fp8";
  row.plan.schedule = "DualPipe";
  row.stack = stack;
  return row;
}

// DeepSeek-V3's report, arXiv 2412.19437, section 3.2.1.
TEST(RowPlan, PairsOfDualPipeHideTheExchangeOfTokens) {
  TrainingRow row = deepseek_row("Megatron-Core");
  const RowScenario paired = scenario_of(row);
  ASSERT_TRUE(paired.scenario) << paired.reason;
  EXPECT_TRUE(paired.scenario->plan.overlap.expert_microbatches);
  EXPECT_TRUE(any_says(paired.filled_in, "beside another microbatch, as dualpipe has it"));
  row.notes = "no EP overlap";
  EXPECT_FALSE(scenario_of(row).scenario->plan.overlap.expert_microbatches);
  row.notes.clear();
  row.plan.schedule = "1F1B";
  EXPECT_FALSE(scenario_of(row).scenario->plan.overlap.expert_microbatches);
}

TEST(RowPlan, DeepSeeksStackCutsNoLayersOfModelsWithExperts) {
  TrainingRow row = deepseek_row("HAI-LLM");
  row.plan.tp.reset();
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->stack.name, "hai-llm");
  EXPECT_EQ(result.scenario->plan.tp, 1);
  EXPECT_TRUE(result.scenario->stack.communication.sends_tokens_once_per_node);
  EXPECT_TRUE(any_says(result.filled_in, "tp: 1, as the stack cuts such models"));
}

// The reports of DeepSeek-V3 (arXiv 2412.19437, section 3.2.1) and V2 (2405.04434, section 3.1.3).
TEST(RowPlan, DeepSeeksStackHasTheSchedulesOfItsReports) {
  TrainingRow row = deepseek_row("HAI-LLM");
  row.plan.schedule.clear();
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->plan.schedule, ScheduleKind::DualPipe);
  EXPECT_TRUE(any_says(result.filled_in, "schedule: dualpipe"));
  row.model.name = "DeepSeek-V2";
  row.plan.pp = 10;
  row.plan.ep = 8;
  row.cluster.gpus = 1280;
  row.plan.precision = "bf16";
  const RowScenario second = scenario_of(row);
  ASSERT_TRUE(second.scenario) << second.reason;
  EXPECT_EQ(second.scenario->plan.schedule, ScheduleKind::ZbH1);
  row.stack = "Megatron-Core";
  const RowScenario other = scenario_of(row);
  ASSERT_TRUE(other.scenario) << other.reason;
  EXPECT_NE(other.scenario->plan.schedule, ScheduleKind::ZbH1);
}

// torchtitan cuts tensor-parallel collectives up only where it is asked to
// (parallelism.enable_async_tensor_parallel).
TEST(RowPlan, TensorParallelOverlapOfPyTorchIsAskedFor) {
  TrainingRow row = shipped_row("titan-70b-g256-2d");
  const auto overlaps = [&row](const char* notes) {
    row.notes = notes;
    const RowScenario result = scenario_of(row);
    EXPECT_TRUE(result.scenario) << notes << ": " << result.reason;
    return result.scenario && result.scenario->plan.overlap.tensor_parallel;
  };
  for (const char* notes : {"async TP", "torch.compile + float8 + async TP",
                            "asynchronous tensor parallelism", "async (micro-pipelined) TP"})
    EXPECT_TRUE(overlaps(notes)) << notes;
  for (const char* notes : {"", "vanilla TP", "no async TP", "async TP off"})
    EXPECT_FALSE(overlaps(notes)) << notes;
  overlaps("async TP");
  EXPECT_TRUE(any_says(scenario_of(row).filled_in, "overlap of tp: true, by the notes"));
}

}  // namespace
}  // namespace shardwright::sim
