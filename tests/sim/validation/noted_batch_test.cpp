// Batch and sequences that notes state where the fields are empty.
#include "sim/validation/noted_batch.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/validation/row_scenario.hpp"
#include "tests/sim/validation/shipped_rows.hpp"

namespace shardwright::sim {
namespace {

using Number = std::optional<std::int64_t>;

// Llama 2 13B on 32 A100, without any length or batch.
TrainingRow open_row(const std::string& notes) {
  TrainingRow row;
  row.id = "open";
  row.source_year = 2024;
  row.model.name = "Llama-2-13B";
  row.cluster.gpu = "A100-SXM4-80GB";
  row.cluster.gpus = 32;
  row.plan.dp = 32;
  row.plan.tp = row.plan.pp = 1;
  row.plan.zero_stage = 3;
  row.plan.recompute = "full";
  row.plan.precision = "bf16";
  row.stack = "DeepSpeed";
  row.target = TargetRow{"step_s", 10.0};
  row.notes = notes;
  return row;
}

TrainingRow completed(TrainingRow row) {
  std::vector<std::string> filled_in;
  const TrainingRow before = row;
  complete_batch(row, filled_in);
  EXPECT_EQ(row != before, any_says(filled_in, ", by the notes")) << row.notes;
  return row;
}

TEST(NotedBatch, TheLengthOfSequencesIsRead) {
  for (const auto& [notes, length] : {std::pair{"sequence length 8192", 8192},
                                      {"seq_len=4096", 4096},
                                      {"seq 2048", 2048},
                                      {"--seq-length 4096", 4096},
                                      {"context length 32k", 32768},
                                      {"8K context", 8192},
                                      {"trained at 8k context; bf16", 8192},
                                      {"sequence length: 131,072", 131072},
                                      {"8192-token sequences", 8192},
                                      {"context window of 16K", 16384},
                                      {"sequences of 4096 tokens", 4096}})
    EXPECT_EQ(completed(open_row(notes)).model.seq_len, length) << notes;
}

TEST(NotedBatch, OtherLengthsAreNotTaken) {
  for (const char* notes :
       {"", "maximum context length 32k", "supports 128k context", "later extended to 32k context",
        "seq not in the card (probably seq 4096)", "context parallel 8",
        "8-way context parallelism", "sequence length 4096, sequence length 8192", "512 sequences",
        "sequence parallel 8", "sequence length 3.5 times longer", "seq 2048/4096",
        "seq 2048 or 4096", "precision and seq not in the card (probably bf16, seq 4096)",
        "seq 4096 (assumed)", "the same at seq 8192 ran out of memory",
        "in this context 256 H100s were used", "about 8k context",
        "whether the sequence length 4096 is padded is unknown"})
    EXPECT_EQ(completed(open_row(notes)).model.seq_len, std::nullopt) << notes;
}

TEST(NotedBatch, TheGlobalBatchIsReadInSequencesOrTokens) {
  for (const auto& [notes, batch] : {std::pair{"GBS=512, MBS=2", 512},
                                     {"GBS512", 512},
                                     {"global batch size 512", 512},
                                     {"global_batch_size: 1,024", 1024},
                                     {"global batch of 512 sequences", 512},
                                     {"4M tokens per batch", 1024},
                                     {"a batch size of 4M tokens", 1024},
                                     {"batch of 2 million tokens", 512},
                                     {"4,194,304 tokens per step", 1024},
                                     {"global batch size 4M tokens", 1024},
                                     {"TP2 PP1 MBS1 GBS1440", 1440}}) {
    TrainingRow row = open_row(notes);
    row.model.seq_len = 4096;
    row.plan.dp.reset();
    EXPECT_EQ(completed(row).plan.global_batch, batch) << notes;
  }
  EXPECT_EQ(completed(open_row("GBS=512, MBS=2")).plan.micro_batch, 2);
  EXPECT_EQ(completed(open_row("micro batch size 4")).plan.micro_batch, 4);
  EXPECT_EQ(completed(open_row("sequence length 8192, 4M tokens per batch")).plan.global_batch,
            512);
}

TEST(NotedBatch, OtherBatchesAreNotTaken) {
  for (const char* notes :
       {"GBS, MBS and seq not in the card", "160-GPU convergence run used GBS 1280",
        "GBS 256 assumed", "constant tokens per batch", "micro-batch and recompute not given",
        "GBS 512 (inferred)", "GBS 256-1024", "global batch size 8 per GPU", "GBS 4,194,304",
        "micro-batch of 8192 tokens", "local batch size 16k tokens", "batch of 4M tokens per GPU",
        "4,000,001 tokens per batch", "batch size ramped up to GBS 512", "micro-batch size 1/2/4",
        "maximum global batch 4096", "GBS 256 and GBS 512 gave the same", "local batch 8",
        "global batch 1.5 times larger"}) {
    TrainingRow row = open_row(notes);
    row.model.seq_len = 4096;
    const TrainingRow read = completed(row);
    EXPECT_EQ(read.plan.global_batch, std::nullopt) << notes;
    EXPECT_EQ(read.plan.micro_batch, std::nullopt) << notes;
  }
}

TEST(NotedBatch, StatedFieldsStandAndReplicasDivideTheBatch) {
  TrainingRow row = open_row("sequence length 8192, GBS=512, MBS=2");
  row.model.seq_len = 4096;
  row.plan.micro_batch = 1;
  row.plan.global_batch = 64;
  EXPECT_EQ(completed(row), row);
  row.plan.global_batch.reset();
  row.notes = "GBS=500";
  std::vector<std::string> filled_in;
  complete_batch(row, filled_in);
  EXPECT_EQ(row.plan.global_batch, std::nullopt);
  EXPECT_TRUE(any_says(filled_in, "global_batch 500 of the notes is no multiple of 32"));
  row.plan.dp.reset();
  EXPECT_EQ(completed(row).plan.global_batch, std::nullopt);
}

TEST(NotedBatch, AccumulatedMicrobatchesMakeABatch) {
  for (const char* notes :
       {"gradient accumulation 8", "gradient accumulation steps 8", "gradient_accumulation_steps=8",
        "GAS=8", "grad accum 8", "8 gradient accumulation steps"}) {
    TrainingRow row = open_row(std::string("seq 4096, MBS 2; ") + notes);
    const RowScenario result = scenario_of(row);
    ASSERT_TRUE(result.scenario) << notes << ": " << result.reason;
    EXPECT_EQ(result.scenario->plan.global_batch, 32 * 2 * 8) << notes;
    EXPECT_TRUE(any_says(result.filled_in, "by the accumulation that the notes say"));
  }
  for (const char* notes :
       {"fp32 gradient accumulation", "gradient accumulation in 32-bit", "gas",
        "gradient accumulation 8 (assumed)", "GAS 4/8", "Gradient accumulation in the table: 8B 32",
        "no gradient accumulation 8"})
    EXPECT_EQ(accumulation_in(open_row(notes)), std::nullopt) << notes;
}

TEST(NotedBatch, RowsThatOnlyNotesCompleteAreSimulated) {
  const RowScenario result = scenario_of(open_row("GBS=512, MBS=2, context length 8k"));
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->plan.seq_len, 8192);
  EXPECT_EQ(result.scenario->plan.global_batch, 512);
  EXPECT_EQ(result.scenario->plan.micro_batch, 2);
}

}  // namespace
}  // namespace shardwright::sim
