// Activation memory of a layer, from what its forward pass keeps, against Korthikanti et al.,
// "Reducing Activation Recomputation in Large Transformer Models" (arXiv 2205.05198), table 2:
// 2-byte activations, feed-forward of 4h, dropout on, unfused attention.
#include <gtest/gtest.h>

#include <variant>

#include "tests/core/lowering/random_lowering.hpp"
#include "tests/core/program/volumes.hpp"

namespace shardwright {
namespace {

constexpr double kHidden = 256.0, kHeads = 8.0, kSequence = 128.0, kBatch = 2.0;

LoweringCase gpt() {
  LoweringCase made;
  made.model.layers = 2;
  made.model.hidden = static_cast<std::int64_t>(kHidden);
  made.model.vocab = 512;
  made.model.attention = {.heads = 8, .kv_heads = 8, .head_dim = 32};
  made.model.mlp = {.ffn_hidden = 1024, .activation = Activation::Gelu, .gated = false};
  made.model.position = PositionKind::Learned;
  made.model.dropout = 0.1;
  made.plan.seq_len = static_cast<std::int64_t>(kSequence);
  made.plan.micro_batch = made.plan.global_batch = static_cast<std::int64_t>(kBatch);
  made.stack.fusion.flash_attention = false;
  return made;
}

// The result is in units of s b h.
double kept_per_layer(const LoweringCase& made) {
  const BlockSet blocks = make_blocks(made.model, made.plan, made.stack);
  const PartBlocks& layer =
      made.plan.reruns_layers() ? blocks.recomputed.front() : blocks.kept.front();
  return kept_bytes(blocks.blocks[layer.forward], blocks.tensors).value() /
         (kSequence * kBatch * kHidden);
}

constexpr double kScores = 5.0 * kHeads * kSequence / kHidden;  // 5 a s / h

TEST(ActivationMemory, OfOneRankIsThePublishedOne) {
  EXPECT_DOUBLE_EQ(kept_per_layer(gpt()), 34.0 + kScores);
}

class ActivationMemoryOfRanks : public testing::TestWithParam<std::int64_t> {};

TEST_P(ActivationMemoryOfRanks, TensorParallel) {
  LoweringCase made = gpt();
  made.plan.tp = GetParam();
  made.plan.sequence_parallel = false;
  const auto t = static_cast<double>(made.plan.tp);
  EXPECT_DOUBLE_EQ(kept_per_layer(made), 10.0 + 24.0 / t + kScores / t);
}

TEST_P(ActivationMemoryOfRanks, TensorAndSequenceParallel) {
  LoweringCase made = gpt();
  made.plan.tp = GetParam();
  EXPECT_DOUBLE_EQ(kept_per_layer(made), (34.0 + kScores) / static_cast<double>(made.plan.tp));
}

TEST_P(ActivationMemoryOfRanks, SelectiveRecomputation) {
  LoweringCase made = gpt();
  made.plan.tp = GetParam();
  made.plan.recompute = RecomputePolicy::Selective;
  EXPECT_DOUBLE_EQ(kept_per_layer(made), 34.0 / static_cast<double>(made.plan.tp));
}

TEST_P(ActivationMemoryOfRanks, FullRecomputation) {
  LoweringCase made = gpt();
  made.plan.tp = GetParam();
  made.plan.recompute = RecomputePolicy::Full;
  EXPECT_DOUBLE_EQ(kept_per_layer(made), 2.0 / static_cast<double>(made.plan.tp));
  made.plan.sequence_parallel = false;
  EXPECT_DOUBLE_EQ(kept_per_layer(made), 2.0);
}

TEST_P(ActivationMemoryOfRanks, ContextParallelDividesTheQueries) {
  LoweringCase made = gpt();
  made.plan.cp = GetParam();
  EXPECT_DOUBLE_EQ(kept_per_layer(made), (34.0 + kScores) / static_cast<double>(made.plan.cp));
}

INSTANTIATE_TEST_SUITE_P(Degrees, ActivationMemoryOfRanks, testing::Values(1, 2, 4, 8));

// Fused attention keeps its output and 4 bytes per head and token in place of the scores.
TEST(ActivationMemory, FusedAttentionKeepsStatisticsInsteadOfScores) {
  LoweringCase made = gpt();
  made.stack.fusion.flash_attention = true;
  EXPECT_DOUBLE_EQ(kept_per_layer(made), 34.0 + 4.0 * kHeads / kHidden);
  made.plan.recompute = RecomputePolicy::Selective;  // has nothing but these left to save
  EXPECT_DOUBLE_EQ(kept_per_layer(made), 34.0);
}

// The three masks of dropout (two of them s b h, one a s^2 b) and the dropped copy go with it.
TEST(ActivationMemory, WithoutDropoutMasksAndCopyGo) {
  LoweringCase made = gpt();
  made.model.dropout = 0.0;
  EXPECT_DOUBLE_EQ(kept_per_layer(made), 32.0 + kScores * 2.0 / 5.0);
}

LoweringCase llama() {
  LoweringCase made = gpt();
  made.stack.fusion.flash_attention = true;
  made.model.dropout = 0.0;
  made.model.position = PositionKind::Rotary;
  made.model.attention.kv_heads = 2;
  made.model.mlp = {.ffn_hidden = 896};
  return made;
}
constexpr double kKeyShare = 2.0 / kHeads, kFfn = 896.0 / kHidden;

// Llama: two inputs of norms and two outputs 4 x 2, queries 2, keys and values 2 x 2 kv/a,
// attention output 2, gate and up 2 x 2 f/h, their product 2 f/h, statistics 4 a/h.
TEST(ActivationMemory, OfLlamaIsTheSumOverItsOperators) {
  EXPECT_DOUBLE_EQ(kept_per_layer(llama()),
                   4 * 2.0 + 2.0 + 4.0 * kKeyShare + 2.0 + 6.0 * kFfn + 4.0 * kHeads / kHidden);
}

// torchtitan's policy keeps the layer's input, attention's output and statistics, and of the seven
// products the odd ones: queries, values, gate and down.
TEST(ActivationMemory, PerOpRecomputationKeepsEveryOtherProductOfLlama) {
  LoweringCase made = llama();
  made.plan.recompute = RecomputePolicy::PerOp;
  EXPECT_NEAR(kept_per_layer(made),
              2.0 + 2.0 + 2.0 * kKeyShare + 2.0 + 2.0 * kFfn + 2.0 + 4.0 * kHeads / kHidden, 1e-12);
}

// Keys, output projection and up run again: products of h (h kv/a + h + f) weights.
TEST(RecomputedWork, PerOpRecomputationRunsTheOtherProductsOfLlama) {
  LoweringCase made = llama();
  made.plan.recompute = RecomputePolicy::PerOp;
  const BlockSet blocks = make_blocks(made.model, made.plan, made.stack);
  Flop flop;
  for (const Op& op : blocks.blocks[blocks.recomputed.front().recompute].ops) {
    EXPECT_NE(op.kind, OpKind::Attention);
    if (const auto* work = std::get_if<GemmWork>(&op.work)) flop += work->flop();
  }
  EXPECT_DOUBLE_EQ(flop.value(),
                   2.0 * kSequence * kBatch * kHidden * kHidden * (kKeyShare + 1.0 + kFfn));
}

// Output head and loss on one part of the tokens after the other hold the logits of that part.
TEST(ActivationMemory, ALossInChunksHoldsTheLogitsOfOne) {
  LoweringCase made = llama();
  const auto logits = [&] {
    Bytes sum;
    for (const TensorSpec& tensor : make_blocks(made.model, made.plan, made.stack).tensors)
      if (tensor.category == MemoryCategory::Logits) sum += tensor.bytes;
    return sum.value();
  };
  const double whole = logits();
  EXPECT_GT(whole, 0.0);
  made.stack.fusion.loss_chunks = 8;
  EXPECT_DOUBLE_EQ(logits(), whole / 8.0);
}

// The backward pass gives back all that the forward pass keeps: all layers of all microbatches
// return to the same level.
TEST(ActivationMemory, BackwardGivesBackWhatForwardKept) {
  for (const RecomputePolicy policy : {RecomputePolicy::None, RecomputePolicy::Selective,
                                       RecomputePolicy::Full, RecomputePolicy::PerOp}) {
    LoweringCase made = gpt();
    made.plan.recompute = policy;
    const BlockSet blocks = make_blocks(made.model, made.plan, made.stack);
    const bool again = made.plan.reruns_layers();
    const PartBlocks& layer = again ? blocks.recomputed.front() : blocks.kept.front();
    double kept = kept_bytes(blocks.blocks[layer.forward], blocks.tensors).value();
    if (again) kept += kept_bytes(blocks.blocks[layer.recompute], blocks.tensors).value();
    const double split = kept_bytes(blocks.blocks[layer.backward_input], blocks.tensors).value() +
                         kept_bytes(blocks.blocks[layer.backward_weight], blocks.tensors).value();
    EXPECT_DOUBLE_EQ(kept_bytes(blocks.blocks[layer.backward], blocks.tensors).value(), -kept);
    EXPECT_DOUBLE_EQ(split, -kept);
  }
}

}  // namespace
}  // namespace shardwright
