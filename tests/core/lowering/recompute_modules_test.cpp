// The activations that each module of selective recomputation saves, counted by hand, and its ops
// that run again, for the modules that Megatron Core names in --recompute-modules.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/lowering/block_set.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "tests/core/program/volumes.hpp"

namespace shardwright {
namespace {

// Megatron Bridge's measured runs of Moonlight (docs/validation.md): tp 2, ep 8, 4,096 tokens.
struct Moonlight {
  ModelSpec model = load_model("moonlight-16b-a3b");
  StackSpec stack = load_stack("nemo-te-mla");
  Plan plan;

  Moonlight() {
    plan.dp = 4;
    plan.tp = 2;
    plan.ep = 8;
    plan.global_batch = 4;
    plan.seq_len = 4096;
  }

  BlockSet blocks(RecomputeModuleSet modules) {
    plan.recompute = modules.empty() ? RecomputePolicy::None : RecomputePolicy::Selective;
    plan.recompute_modules = modules;
    return make_blocks(model, plan, stack);
  }
};

// `kind`: 0 for the dense layer, 1 for those with experts.
double kept(const BlockSet& blocks, std::size_t kind) {
  return kept_bytes(blocks.blocks[blocks.kept[kind].forward], blocks.tensors).value();
}

double saved(RecomputeModuleSet modules, std::size_t kind) {
  return kept(Moonlight().blocks({}), kind) - kept(Moonlight().blocks(modules), kind);
}

std::set<std::string> rerun(RecomputeModuleSet modules, std::size_t kind) {
  const BlockSet blocks = Moonlight().blocks(modules);
  std::set<std::string> names;
  for (const Op& op : blocks.blocks[blocks.kept[kind].backward].ops)
    if (op.phase == Phase::Recompute) names.insert(op.name);
  return names;
}

constexpr double kTokens = 4096.0, kTokensOfRank = 2048.0;

TEST(RecomputedModules, SaveWhatTheirBackwardPassNeedsBeyondTheirInput) {
  const ModelSpec model = Moonlight().model;
  const AttentionSpec& a = model.attention;
  const auto hidden = static_cast<double>(model.hidden);
  const auto heads = static_cast<double>(a.heads / 2);
  const auto routed = kTokensOfRank * static_cast<double>(model.moe->top_k);
  const auto expert = static_cast<double>(model.moe->expert_ffn);
  // One logarithm a head and token.
  EXPECT_DOUBLE_EQ(saved({RecomputeModule::CoreAttention}, 1), kTokens * heads * 4.0);
  // Queries, keys and values, and the normed bottleneck of keys and values.
  EXPECT_DOUBLE_EQ(saved({RecomputeModule::MlaUpProjection}, 1),
                   2.0 * (kTokens * heads * static_cast<double>(2 * a.head_dim + a.v_head_dim) +
                          kTokensOfRank * static_cast<double>(a.kv_lora_rank)));
  EXPECT_DOUBLE_EQ(saved({RecomputeModule::MoeActivation}, 1), 2.0 * routed * expert);
  EXPECT_DOUBLE_EQ(saved({RecomputeModule::MoeActivation}, 0), 0.0);
  // Before MLA and before experts norms are modules of their own; a dense block contains its norm.
  EXPECT_DOUBLE_EQ(saved({RecomputeModule::LayerNorm}, 1), 2.0 * 2.0 * kTokensOfRank * hidden);
  EXPECT_DOUBLE_EQ(saved({RecomputeModule::LayerNorm}, 0), 2.0 * kTokensOfRank * hidden);
  const auto width = static_cast<double>(model.mlp.ffn_hidden / 2);
  EXPECT_DOUBLE_EQ(saved({RecomputeModule::Mlp}, 0),
                   2.0 * (kTokensOfRank * hidden + 3.0 * kTokens * width));
  EXPECT_DOUBLE_EQ(saved({RecomputeModule::Mlp}, 1), 0.0);
  const auto shared = static_cast<double>(model.moe->shared_expert_ffn / 2);
  EXPECT_DOUBLE_EQ(saved({RecomputeModule::SharedExperts}, 1), 2.0 * 3.0 * kTokens * shared);
  const double scores = 4.0 * kTokensOfRank * static_cast<double>(model.moe->experts);
  EXPECT_DOUBLE_EQ(
      saved({RecomputeModule::Moe}, 1),
      saved({RecomputeModule::SharedExperts}, 1) + scores + 2.0 * routed * (hidden + 3.0 * expert));
}

TEST(RecomputedModules, AModuleInsideOfAnotherRunsAgainOnce) {
  const RecomputeModuleSet whole = {RecomputeModule::Moe};
  const RecomputeModuleSet parts = {RecomputeModule::Moe, RecomputeModule::MoeActivation,
                                    RecomputeModule::SharedExperts};
  EXPECT_EQ(rerun(whole, 1), rerun(parts, 1));
  EXPECT_DOUBLE_EQ(saved(whole, 1), saved(parts, 1));
}

// A stack may mean modules by selective recomputation that a model has not.
TEST(RecomputedModules, ThatAModelHasNotDoNotRun) {
  const ModelSpec model = load_model("llama3-8b");
  Plan plan;
  plan.recompute = RecomputePolicy::Selective;
  const BlockSet blocks = make_blocks(model, plan, load_stack("hai-llm"));
  for (const Op& op : blocks.blocks[blocks.kept.front().backward].ops) {
    EXPECT_TRUE(op.phase != Phase::Recompute || op.kind == OpKind::Norm) << op.name;
  }
}

TEST(RecomputedModules, RunTheirOwnOpsAgain) {
  EXPECT_EQ(rerun({RecomputeModule::MoeActivation}, 1),
            std::set<std::string>({"experts.activation"}));
  EXPECT_EQ(rerun({RecomputeModule::LayerNorm}, 1),
            std::set<std::string>({"attention.norm", "ffn.norm"}));
  EXPECT_TRUE(rerun({RecomputeModule::Moe}, 1).contains("experts.combine"));
  EXPECT_TRUE(rerun({RecomputeModule::MlaUpProjection}, 1).contains("attention.kv_up"));
  EXPECT_FALSE(rerun({RecomputeModule::MlaUpProjection}, 1).contains("attention.kv_down"));
}

}  // namespace
}  // namespace shardwright
