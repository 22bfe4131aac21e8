// The adapters of published models against counts that others print, and their shapes and splits.
#include "core/spec/adapters.hpp"

#include <gtest/gtest.h>

#include "core/lowering/block_set.hpp"
#include "core/spec/model_library.hpp"

namespace shardwright {
namespace {

using enum LoraTarget;

std::int64_t trained(const char* model, std::int64_t rank, LoraTargetSet targets = {}) {
  return count_adapters(load_model(model), Lora{.rank = rank, .targets = targets}).total;
}

// PEFT's print_trainable_parameters for Llama 2 7B (rank 8 on queries and values, its default) and
// for Llama 3 8B (rank 16 on all projections), and the 37.7M of GPT-3 175B in table 4 of arXiv
// 2106.09685 (rank 8 on queries and values).
TEST(Adapters, HaveAsManyParametersAsPublished) {
  EXPECT_EQ(trained("llama2-7b", 8, {Q, V}), 4'194'304);
  EXPECT_EQ(trained("llama3-8b", 16), 41'943'040);
  EXPECT_EQ(trained("gpt3-175b", 8, {Q, V}), 37'748'736);
}

TEST(Adapters, GrowWithTheirRankAndTargets) {
  for (const char* model : {"llama3-8b", "deepseek-v3", "qwen3-30b-a3b", "mixtral-8x7b"}) {
    EXPECT_EQ(trained(model, 32), 2 * trained(model, 16)) << model;
    EXPECT_GT(trained(model, 16, {Q, K, V, O}), trained(model, 16, {Q, V})) << model;
  }
}

// The experts' are 256 x 3 projections in each of 58 layers, of 7,168 and 2,048 columns and rows.
TEST(Adapters, OfRoutedExpertsAreCountedApart) {
  const AdapterCount count =
      count_adapters(load_model("deepseek-v3"), Lora{.rank = 4, .targets = {}});
  EXPECT_EQ(count.routed, 58LL * 256 * 3 * 4 * (7168 + 2048));
  EXPECT_GT(count.total, count.routed);
}

// One adapter for queries, keys and values has one A of them instead of three.
TEST(Adapters, OfSeveralProjectionsShareTheirInput) {
  const ModelSpec model = load_model("llama3-8b");
  const Lora apart{.rank = 16, .targets = {Q, K, V}};
  Lora joint = apart;
  joint.joint = true;
  EXPECT_EQ(count_adapters(model, apart).total - count_adapters(model, joint).total,
            2 * 16 * model.hidden * model.layers);
  ASSERT_EQ(adapter_parameters(model, joint, 3).size(), 2U);
  EXPECT_EQ(adapter_parameters(model, joint, 3)[0].name,
            "layers.3.attention.qkv_proj.lora_a.weight");
}

// With tensor parallelism a rank holds the share of a projection's split dimension, and all of the
// other matrix; the gradients of the latter are added up.
TEST(Adapters, AreSplitAsTheirProjections) {
  const ModelSpec model = load_model("llama3-8b");
  Plan plan;
  plan.tp = 4;
  const auto rank_of = [&](LoraTargetSet targets) {
    return rank_parameters(adapter_parameters(model, Lora{.rank = 16, .targets = targets}, 0),
                           plan);
  };
  const double hidden = 4096.0, ffn = 14336.0;
  EXPECT_EQ(rank_of({Q}).dense, 16.0 * (hidden + hidden / 4.0));
  EXPECT_EQ(rank_of({Q}).tensor_reduced, 16.0 * hidden);
  EXPECT_EQ(rank_of({Down}).dense, 16.0 * (ffn / 4.0 + hidden));
  EXPECT_EQ(rank_of({Down}).tensor_reduced, 16.0 * hidden);
}

// 0.127 bits of constants beside the 4 (arXiv 2305.14314, section 3, "Double Quantization").
TEST(Adapters, LieOverWeightsOf4Bits) {
  EXPECT_NEAR(kNf4Bytes * 8.0, 4.127, 5e-4);
}

}  // namespace
}  // namespace shardwright
