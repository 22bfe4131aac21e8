// Which published measurements are those of a step that trains all weights.
#include "sim/validation/whole_step.hpp"

#include <gtest/gtest.h>

#include "sim/validation/row_scenario.hpp"
#include "tests/sim/validation/shipped_rows.hpp"

namespace shardwright::sim {
namespace {

std::string reason(const char* notes) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.notes = notes;
  return no_whole_step(row);
}

TEST(WholeStep, WhatIsNoTrainingStepIsSkippedWithTheReason) {
  for (const char* notes :
       {"RLHF step 3: generation and training", "PPO (RLHF), actor and critic",
        "GRPO, 8 rollouts a prompt", "inference throughput", "inference-only run",
        "measured in inference", "forward pass only", "bf16; forward only",
        "timing of forward only", "prefill only", "decode throughput at batch 64"})
    EXPECT_EQ(reason(notes).substr(0, 45), "the notes say that this is no training step: ")
        << notes;
  for (const char* notes :
       {"only the last 4 layers are trained", "fine-tuning with frozen embeddings",
        "the backbone is frozen", "freeze backbone", "linear probe"})
    EXPECT_EQ(reason(notes).substr(0, 46), "the notes say that not all weights are trained")
        << notes;
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.notes = "PPO";
  const RowScenario result = scenario_of(row);
  EXPECT_FALSE(result.scenario);
  EXPECT_NE(result.reason.find("\"PPO\""), std::string::npos);
  row.notes.clear();
  row.stack = "TensorRT-LLM";
  EXPECT_NE(no_whole_step(row).find("serves models"), std::string::npos);
}

TEST(WholeStep, WhatIsNamedInPassingIsNoReason) {
  for (const char* notes :
       {"the inference engine was not used", "the model is used for inference later",
        "no RLHF, pre-training alone", "pre-training before RLHF", "weights are RLHF-tuned",
        "SFT on DPO data", "FP8 in the forward pass only", "fourth generation of tensor cores",
        "no frozen layers", "not inference throughput",
        "training throughput of table 3; table 4 has inference throughput", "prefilled caches",
        "not forward only"})
    EXPECT_EQ(reason(notes), "") << notes;
}

TEST(WholeStep, LowRankAdaptersOfAnotherRunAreNoReason) {
  for (const char* notes :
       {"QLoRA baseline is elsewhere; full fine-tuning here", "full fine-tuning, no LoRA",
        "full fine-tuning rather than LoRA", "LoRA is in another table; all weights are trained",
        "full fine-tuning (compared with LoRA r=16)", "slower than LoRA", "against a LoRA baseline",
        "QLoRA numbers: see another table"})
    EXPECT_EQ(reason(notes), "") << notes;
  for (const char* notes :
       {"LoRA r=16", "QLoRA; the full fine-tuning baseline is elsewhere", "LoRA, no DPO",
        "LoRA baseline", "LoRA r=16 (table 3)", "PEFT with rank 8. Full fine-tuning is in table 3"})
    EXPECT_EQ(reason(notes).substr(0, 5), "LoRA:") << notes;
}

}  // namespace
}  // namespace shardwright::sim
