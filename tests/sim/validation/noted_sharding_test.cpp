// FSDP's words for how states are sharded.
#include "sim/validation/noted_sharding.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>

#include "sim/validation/row_scenario.hpp"
#include "tests/sim/validation/shipped_rows.hpp"

namespace shardwright::sim {
namespace {

// Llama 2 7B on 32 A100 in nodes of 8, sharding open.
TrainingRow open_row(const std::string& stack, const std::string& notes) {
  TrainingRow row;
  row.id = "open";
  row.source_year = 2024;
  row.model.name = "Llama-2-7B";
  row.model.seq_len = 4096;
  row.cluster.gpu = "A100-SXM4-80GB";
  row.cluster.gpus = 32;
  row.cluster.gpus_per_node = 8;
  row.plan.micro_batch = 1;
  row.plan.global_batch = 64;
  row.plan.recompute = "full";
  row.plan.precision = "bf16";
  row.stack = stack;
  row.target = TargetRow{"step_s", 10.0};
  row.notes = notes;
  return row;
}

struct Words {
  const char* stack;
  const char* notes;
  int zero_stage;
  std::int64_t group;
};

void PrintTo(const Words& words, std::ostream* out) {
  *out << words.stack << "; " << words.notes;
}

class WordsForSharding : public ::testing::TestWithParam<Words> {};

TEST_P(WordsForSharding, AreThoseOfAPlan) {
  const Words& words = GetParam();
  const RowScenario result = scenario_of(open_row(words.stack, words.notes));
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->plan.zero_stage, words.zero_stage);
  EXPECT_EQ(result.scenario->plan.shard_group, words.group);
  EXPECT_TRUE(any_says(result.filled_in, "zero_stage: " + std::to_string(words.zero_stage)));
}

INSTANTIATE_TEST_SUITE_P(
    Fsdp, WordsForSharding,
    ::testing::Values(Words{"FSDP", "FULL_SHARD", 3, 0}, Words{"FSDP (SHARD_GRAD_OP)", "", 2, 0},
                      Words{"FSDP", "sharding_strategy=SHARD_GRAD_OP", 2, 0},
                      Words{"FSDP", "sharding strategy: NO_SHARD", 0, 0},
                      Words{"FSDP", "HYBRID_SHARD", 3, 8}, Words{"FSDP (HSDP)", "", 3, 8},
                      Words{"FSDP", "ShardingStrategy._HYBRID_SHARD_ZERO2", 2, 8},
                      Words{"FSDP", "HSDP with SHARD_GRAD_OP", 2, 8},
                      Words{"FSDP2", "HSDP, dp_replicate=2, dp_shard=16", 3, 16},
                      Words{"FSDP", "HYBRID_SHARD, shard group size 4", 3, 4},
                      Words{"FSDP2", "HSDP, dp_replicate=2", 3, 16},
                      Words{"FSDP2", "HSDP, dp_replicate=2, dp_shard=-1", 3, 16},
                      Words{"FSDP", "HYBRID_SHARD, shard group of 2 nodes", 3, 8},
                      Words{"FSDP", "no HYBRID_SHARD", 3, 0},
                      Words{"FSDP", "FULL_SHARD as fast as SHARD_GRAD_OP", 3, 0}));

INSTANTIATE_TEST_SUITE_P(
    InternEvo, WordsForSharding,
    ::testing::Values(Words{"InternEvo", "zero1=8", 1, 8},
                      Words{"InternEvo", "tp=1, zero1=-1", 1, 0},
                      Words{"InternEvo", "zero1=8: states over the 8 GPUs of a node", 1, 8},
                      Words{"InternEvo", "parallel = dict(zero1=dict(size=16, fsdp=False))", 1, 16},
                      Words{"InternEvo", "zero1 size 4, checkpoint=False", 1, 4},
                      Words{"InternEvo", "zero1=0", 1, 0}, Words{"InternEvo", "zero1=1", 0, 0},
                      Words{"InternEvo", "Hybrid Zero: zero1=8", 1, 8},
                      Words{"our own trainer, like Megatron-LM", "zero1=8", 1, 8}));

// ZeRO-1 over groups divides no gradients, and 5 do not divide 32 ranks.
TEST(NotedSharding, AGroupOfZero1ThatDoesNotAgreeIsListed) {
  const auto with = [](const char* notes, int zero_stage) {
    TrainingRow row = open_row("InternEvo", notes);
    row.plan.zero_stage = zero_stage;
    return scenario_of(row);
  };
  EXPECT_EQ(with("zero1=8", 1).scenario->plan.shard_group, 8);
  for (const RowScenario& result :
       {with("zero1=5", 1), with("zero1=64", 1), with("zero1=1", 1), with("zero1=8", 2)}) {
    ASSERT_TRUE(result.scenario) << result.reason;
    EXPECT_EQ(result.scenario->plan.shard_group, 0);
    EXPECT_TRUE(any_says(result.filled_in, "not taken"));
  }
  EXPECT_EQ(with("no zero1=8", 1).scenario->plan.shard_group, 0);
  EXPECT_FALSE(any_says(with("zero1=-1", 1).filled_in, "not taken"));
}

// A switch elsewhere.
TEST(NotedSharding, Zero1OfOneIsAGroupOnlyInInternEvo) {
  const RowScenario result = scenario_of(open_row("Megatron-LM", "zero1=1"));
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->plan.zero_stage,
            scenario_of(open_row("Megatron-LM", "")).scenario->plan.zero_stage);
}

TEST(NotedSharding, TheFieldStands) {
  TrainingRow row = open_row("FSDP", "SHARD_GRAD_OP (recorded as zero_stage 2)");
  row.plan.zero_stage = 3;
  EXPECT_EQ(scenario_of(row).scenario->plan.zero_stage, 3);
  row.notes = "HYBRID_SHARD";
  EXPECT_EQ(scenario_of(row).scenario->plan.shard_group, 8);
}

// Ranks of tensor parallelism hold other parts of the states.
TEST(NotedSharding, TheGroupOfANodeHasItsDataParallelRanks) {
  TrainingRow row = open_row("FSDP2", "HSDP");
  row.plan.tp = 2;
  row.plan.pp = 1;
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->plan.shard_group, 4);
}

TEST(NotedSharding, ZeroPlusPlusIsListed) {
  const auto filled_in = [](const char* notes) {
    return scenario_of(open_row("DeepSpeed ZeRO-3", notes)).filled_in;
  };
  EXPECT_TRUE(any_says(filled_in("ZeRO++ hpZ"), "copy of the parameters on each node"));
  EXPECT_TRUE(
      any_says(filled_in("zero_hpz_partition_size=8"), "copy of the parameters on each node"));
  EXPECT_TRUE(any_says(filled_in("qgZ and qwZ"), "quantised collectives"));
  EXPECT_TRUE(any_says(filled_in("ZeRO++"), "simulated as ZeRO"));
  EXPECT_FALSE(any_says(filled_in("no hpZ"), "copy of the parameters"));
}

}  // namespace
}  // namespace shardwright::sim
