// Sizes that published measurements leave open.
#include "sim/validation/row_sizes.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "core/spec/model_library.hpp"
#include "sim/validation/row_scenario.hpp"
#include "tests/sim/validation/shipped_rows.hpp"

namespace shardwright::sim {
namespace {

// A row whose model has nothing but a name; the rest is stated.
TrainingRow row_of(const std::string& name) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.model = ModelRow{};
  row.model.name = name;
  row.model.seq_len = 4096;
  return row;
}

// … with the sizes that sources usually give.
TrainingRow row_with_main_sizes(const std::string& model) {
  const ModelSpec spec = load_model(model);
  TrainingRow row = row_of(model);
  row.model.layers = spec.layers;
  row.model.hidden = spec.hidden;
  row.model.heads = spec.attention.heads;
  row.model.ffn_hidden = spec.moe ? spec.moe->expert_ffn : spec.mlp.ffn_hidden;
  return row;
}

ModelSpec model_for(const TrainingRow& row) {
  const RowScenario result = scenario_of(row);
  EXPECT_TRUE(result.scenario) << row.model.name << ": " << result.reason;
  return result.scenario ? result.scenario->model : ModelSpec{};
}

// Of key-value heads, vocabulary, width of heads, gate, tied embeddings and experts none is stated.
TEST(RowSizes, WhatIsLeftOpenIsThatOfTheNamedModel) {
  for (const char* name : {"llama3.1-405b", "llama3.2-1b", "gemma-7b", "qwen3-32b", "falcon-40b",
                           "pythia-6.9b", "gpt3-175b", "mixtral-8x7b", "qwen3-30b-a3b"}) {
    const ModelSpec expected = load_model(name);
    const ModelSpec model = model_for(row_with_main_sizes(name));
    EXPECT_EQ(model.attention, expected.attention) << name;
    EXPECT_EQ(model.vocab, expected.vocab) << name;
    EXPECT_EQ(model.mlp.gated, expected.mlp.gated) << name;
    EXPECT_EQ(model.tied_embeddings, expected.tied_embeddings) << name;
    EXPECT_EQ(model.moe, expected.moe) << name;
  }
}

TEST(RowSizes, WhatIsTakenIsSaidByFigure) {
  const auto filled = scenario_of(row_with_main_sizes("llama3.1-405b")).filled_in;
  for (const char* part : {"kv_heads 8", "vocab 128256", "head_dim 128", "tied_embeddings false",
                           "as the shipped llama3.1-405b, by the name"})
    EXPECT_TRUE(any_says(filled, part)) << part;
}

TEST(RowSizes, StatedSizesGoBeforeTheNamedModel) {
  TrainingRow row = row_with_main_sizes("llama3-70b");
  row.model.kv_heads = 16;
  row.model.layers = 4;
  const ModelSpec model = model_for(row);
  EXPECT_EQ(model.attention.kv_heads, 16);
  EXPECT_EQ(model.layers, 4);
  EXPECT_EQ(model.vocab, 128256);
}

// A name says nothing against the sizes, which here are those of LLaMA-7B.
TEST(RowSizes, AModelOfOtherSizesThanItsNameIsKnownByThem) {
  TrainingRow row = row_with_main_sizes("llama-7b");
  row.model.name = "Llama-3-8B";
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->model.attention.kv_heads, 32);
  EXPECT_TRUE(any_says(result.filled_in, "by the sizes"));
}

// Without a name that is known the shape tells; heads may be missing then.
TEST(RowSizes, WhatIsLeftOpenIsThatOfTheModelOfTheseSizes) {
  TrainingRow row = row_with_main_sizes("llama3-70b");
  row.model.name = "our 70B";
  row.model.heads.reset();
  const ModelSpec model = model_for(row);
  EXPECT_EQ(model.attention, load_model("llama3-70b").attention);
}

// Of 3072 wide blocks with 24 heads the only shipped one is StarCoder 2's.
TEST(RowSizes, FamiliesOfPlainBlocksAreNotToldByTheirSizes) {
  TrainingRow row = row_with_main_sizes("starcoder2-3b");
  EXPECT_EQ(model_for(row).attention.sliding_window, 4096);
  row.model.name = "GPT-4B";
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->model.family, "gpt");
  EXPECT_EQ(result.scenario->model.attention.sliding_window, 0);
}

// Mixtral's own sizes are not those of Mistral, and its experts not a dense block.
TEST(RowSizes, ExpertsThatAreNotStatedAreNotLost) {
  TrainingRow row = row_with_main_sizes("mixtral-8x7b");
  row.plan.ep = 4;
  EXPECT_EQ(model_for(row).moe->experts, 8);
  row.model.moe = MoeRow{8, 2, std::nullopt, std::nullopt, std::nullopt};
  EXPECT_EQ(model_for(row).moe, load_model("mixtral-8x7b").moe);
  row.model.moe = MoeRow{8, std::nullopt, 14336, 0, 0};
  EXPECT_EQ(model_for(row).moe, load_model("mixtral-8x7b").moe);
}

TEST(RowSizes, ExpertsOfAnUnknownModelAreAsWideAsItsBlocks) {
  TrainingRow row = row_with_main_sizes("llama3-70b");
  row.model.name = "Llama3-8x70B";
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  const MoeSpec& moe = *result.scenario->model.moe;
  EXPECT_EQ(moe.experts, 8);
  EXPECT_EQ(moe.expert_ffn, 28672);
  EXPECT_EQ(moe.top_k, 2);
  EXPECT_EQ(moe.shared_experts, 0);
  for (const char* part : {"experts: 8, by the name", "expert_ffn 28672, top_k 2"})
    EXPECT_TRUE(any_says(result.filled_in, part)) << part;
}

// Experts of 8 in layers of one width: Mixtral 8x22B and another.
TEST(RowSizes, ExpertsOfAnotherWidthMakeAnotherModel) {
  TrainingRow row = row_with_main_sizes("mixtral-8x22b");
  row.model.name = "our own";
  row.model.moe = MoeRow{8, 2, std::nullopt, 0, 0};
  EXPECT_EQ(model_for(row).moe->expert_ffn, 16384);
  row.model.ffn_hidden = 32768;
  EXPECT_EQ(model_for(row).moe->expert_ffn, 32768);
}

TEST(RowSizes, BlocksThatAreNotFourTimesAsWideAreGated) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.model.gated_mlp.reset();
  EXPECT_FALSE(model_for(row).mlp.gated);
  row.model.ffn_hidden = 6144;
  EXPECT_TRUE(model_for(row).mlp.gated);
}

TEST(RowSizes, SparseModelsWithoutExpertsAreNoDenseOnes) {
  for (const char* name : {"GPT-MoE-70B", "Some-70B-A8B"}) {
    TrainingRow row = row_with_main_sizes("llama3-70b");
    row.model.name = name;
    EXPECT_EQ(scenario_of(row).reason, "the source does not say the model's experts") << name;
  }
  TrainingRow row = row_with_main_sizes("llama3-70b");
  row.model.name = "our own";
  row.model.moe = MoeRow{std::nullopt, 2, 1024, 0, 0};
  EXPECT_EQ(scenario_of(row).reason, "the source does not say the model's number of experts");
}

// 108 heads of 128 are no multiple of 8, 128 of 108 are.
TEST(RowSizes, HeadsThatNothingTellsAreDividedByTensorParallelism) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.model.name = "our own";
  row.model.layers = 2;
  row.model.hidden = 13824;
  row.model.ffn_hidden = 4 * 13824;
  row.model.heads.reset();
  row.model.kv_heads.reset();
  row.model.head_dim.reset();
  EXPECT_EQ(model_for(row).attention.heads, 108);
  row.plan.tp = 8;
  row.plan.dp = 4;
  EXPECT_EQ(model_for(row).attention.heads, 128);
}

// Step time, a rate: the length of training; where it was extended later, of a rate alone.
TEST(RowSizes, SequencesAreAsLongAsTheNamedModelWasTrainedWith) {
  const auto length = [](const std::string& name, const char* metric) {
    TrainingRow row = row_of(name);
    row.model.seq_len.reset();
    row.target = TargetRow{metric, 1.0};
    const RowScenario result = scenario_of(row);
    EXPECT_EQ(result.scenario.has_value(), any_says(result.filled_in, "seq_len: ")) << name;
    return result.scenario ? result.scenario->plan.seq_len : 0;
  };
  const char* rate = "tokens_per_s_per_gpu";
  EXPECT_EQ(length("Llama-2-7B", rate), 4096);
  EXPECT_EQ(length("LLaMA-7B", "step_s"), 2048);
  EXPECT_EQ(length("Llama-3.1-8B", rate), 8192);
  EXPECT_EQ(length("Qwen2.5-7B", rate), 4096);
  EXPECT_EQ(length("Llama-3.1-8B", "step_s"), 0);
}

// 512 sequences of 2048 tokens in 10 s on 32 accelerators, rounded as sources do.
TEST(RowSizes, StepTimeAndRateTellTheSequence) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  ASSERT_EQ(row.plan.global_batch, 512);
  ASSERT_EQ(row.cluster.gpus, 32);
  row.model.seq_len.reset();
  row.measured.iteration_s = 10.0;
  row.measured.tokens_per_s_per_gpu = 3300.0;
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->plan.seq_len, 2048);
  EXPECT_TRUE(any_says(result.filled_in, "seq_len: 2048, by step time and tokens per second"));
}

}  // namespace
}  // namespace shardwright::sim
