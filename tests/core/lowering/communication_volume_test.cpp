// Bytes on the wire against the published volumes: Megatron-LM (arXiv 1909.08053, 2104.04473), its
// sequence parallelism (2205.05198), ZeRO (1910.02054), ring attention (2310.01889), DeepSpeed
// Ulysses (2309.14509), GShard's all-to-all (2006.16668).
#include <gtest/gtest.h>

#include <tuple>

#include "core/program/shard_shape.hpp"
#include "core/program/validate.hpp"
#include "tests/core/lowering/random_lowering.hpp"
#include "tests/core/program/volumes.hpp"

namespace shardwright {
namespace {

constexpr double kLayers = 4.0, kWidth = 64.0, kSequenceTokens = 64.0, kMicrobatches = 3.0;
constexpr double kMicrobatchTokens = kSequenceTokens * 2.0;
constexpr double kElement = 2.0;

LoweringCase dense_model() {
  LoweringCase made = small_case(4);
  made.plan.micro_batch = 2;
  made.plan.global_batch = 6;
  made.plan.zero_stage = 0;
  return made;
}

LoweringCase with_replicas(LoweringCase made, std::int64_t dp) {
  made.plan.dp = dp;
  made.plan.global_batch *= dp;
  return made;
}

double sent(const LoweringCase& made, Group group) {
  double sum = 0.0;
  for (const RankVolumes& stage : volumes(made.lower())) sum += stage.of(group).value();
  return sum;
}

double others(double members) {
  return (members - 1.0) / members;
}

// arXiv 2104.04473, section 4.1: each rank sends its part of what all of them hold alike, and the
// next stage gathers the parts.
TEST(ScatteredMessages, MoveBytesFromThePipelineToTheTensorGroup) {
  LoweringCase whole = dense_model();
  whole.plan.tp = 4;
  whole.plan.pp = 2;
  whole.plan.sequence_parallel = false;
  LoweringCase parts = whole;
  parts.stack.communication.scatters_messages = true;
  ASSERT_TRUE(validate(parts.lower()).empty());
  const double messages = sent(whole, Group::Pipeline);
  ASSERT_EQ(messages, 2.0 * kMicrobatches * kMicrobatchTokens * kWidth * kElement);
  EXPECT_DOUBLE_EQ(sent(parts, Group::Pipeline), messages / 4.0);
  EXPECT_DOUBLE_EQ(sent(parts, Group::Tensor), sent(whole, Group::Tensor) + messages * others(4.0));
  // The ranks hold parts anyway with sequence parallelism.
  for (LoweringCase* each : {&whole, &parts}) each->plan.sequence_parallel = true;
  EXPECT_EQ(sent(parts, Group::Pipeline), sent(whole, Group::Pipeline));
  EXPECT_EQ(sent(parts, Group::Tensor), sent(whole, Group::Tensor));
}

class VolumeOfRanks : public testing::TestWithParam<std::int64_t> {
 protected:
  static double n() { return static_cast<double>(GetParam()); }
};

// Four all-reduces of s b h per layer and microbatch; beyond the layers one in the embedding, one
// of the head's input gradient, and three numbers per token in the loss.
TEST_P(VolumeOfRanks, TensorParallel) {
  LoweringCase made = dense_model();
  made.plan.tp = GetParam();
  made.plan.sequence_parallel = false;
  const double hidden = 2.0 * others(n()) * kMicrobatchTokens * kWidth * kElement;
  const double loss = 2.0 * others(n()) * kMicrobatchTokens * 12.0;
  EXPECT_NEAR(sent(made, Group::Tensor), kMicrobatches * ((4.0 * kLayers + 2.0) * hidden + loss),
              1.0);
}

// Each all-reduce becomes an all-gather and a reduce-scatter of the same volume together; inputs of
// the column-split layers, of which a rank keeps only its part, are gathered again for the weight
// gradients. The norms' gradients of the parts of the sequence are added up in fp32, once a step.
TEST_P(VolumeOfRanks, SequenceParallel) {
  LoweringCase made = dense_model();
  made.plan.tp = GetParam();
  const double half = others(n()) * kMicrobatchTokens * kWidth * kElement;
  const double loss = 2.0 * others(n()) * kMicrobatchTokens * 12.0;
  const double layer = 4.0 * 2.0 * half + 2.0 * half;
  const double embedding = 2.0 * half, head = 3.0 * half;
  // Once in a step the fp32 gradients of the norms, which each rank applied to its own tokens
  // (Megatron Core, finalize_model_grads).
  const double norms = 2.0 * others(n()) * (2.0 * kLayers + 1.0) * kWidth * 4.0;
  EXPECT_NEAR(sent(made, Group::Tensor),
              kMicrobatches * (kLayers * layer + embedding + head + loss) + norms, 1.0);
}

// MLA's down projections are not split: the rotary key, which all heads share, is gathered forward
// and its gradient scattered backward; their gradients and those of the norms in the bottlenecks
// are added up once.
TEST_P(VolumeOfRanks, LatentAttention) {
  LoweringCase made = dense_model();
  made.model.attention = {.kind = AttentionKind::MultiHeadLatent,
                          .heads = 8,
                          .kv_heads = 8,
                          .head_dim = 12,
                          .q_lora_rank = 16,
                          .kv_lora_rank = 24,
                          .qk_nope_head_dim = 8,
                          .qk_rope_head_dim = 4,
                          .v_head_dim = 8};
  made.plan.tp = GetParam();
  const double token = others(n()) * kMicrobatchTokens * kElement;
  const double hidden = token * kWidth;
  const double loss = 2.0 * others(n()) * kMicrobatchTokens * 12.0;
  // Up projections gather their bottlenecks forward and for the weight gradient, and scatter
  // backward; output and feed-forward as elsewhere.
  const double layer =
      3.0 * token * (16.0 + 24.0) + 2.0 * token * 4.0 + 2.0 * hidden + 5.0 * hidden;
  const double replicated = 2.0 * kWidth + kWidth * (16.0 + 24.0 + 4.0) + 16.0 + 24.0;
  const double added_up = 2.0 * others(n()) * 4.0 * (kLayers * replicated + kWidth);
  EXPECT_NEAR(sent(made, Group::Tensor),
              kMicrobatches * (kLayers * layer + 5.0 * hidden + loss) + added_up, 1.0);
}

// Ranks beyond the key/value heads hold copies of them, whose gradients are added up.
TEST(Volume, OfReplicatedKeyValueHeads) {
  LoweringCase made = dense_model();
  made.model.attention.kv_heads = 1;
  made.plan.tp = 4;
  made.plan.sequence_parallel = false;
  const double with_one = sent(made, Group::Tensor);
  made.model.attention.kv_heads = 4;
  const double key_and_value = 2.0 * kWidth * 8.0;
  EXPECT_NEAR(with_one - sent(made, Group::Tensor),
              2.0 * others(4.0) * kLayers * key_and_value * 4.0, 1.0);
}

// Full recomputation runs the forward collectives again.
TEST_P(VolumeOfRanks, TensorParallelRecomputed) {
  LoweringCase made = dense_model();
  made.plan.tp = GetParam();
  const double kept = sent(made, Group::Tensor);
  made.plan.recompute = RecomputePolicy::Full;
  const double forward = 4.0 * others(n()) * kMicrobatchTokens * kWidth * kElement;
  EXPECT_NEAR(sent(made, Group::Tensor), kept + kMicrobatches * kLayers * forward, 1.0);
}

double parameters_of(const LoweringCase& made) {
  return static_cast<double>(count_parameters(made.model).total);
}

// 2 P w, with gradients in fp32 as Megatron reduces them.
TEST_P(VolumeOfRanks, DataParallel) {
  const LoweringCase made = with_replicas(dense_model(), GetParam());
  EXPECT_NEAR(sent(made, Group::Data), 2.0 * others(n()) * 4.0 * parameters_of(made), 1.0);
}

// Reduce-scatter of the gradients and all-gather of the parameters: 2 P w where both have w bytes.
// ZeRO-2 keeps only its shard of the gradients, so it reduces them after each microbatch. Each adds
// up the squares of its shards' gradients, one fp32 number.
TEST_P(VolumeOfRanks, ZeroOneAndTwo) {
  for (const bool overlaps : {true, false}) {
    LoweringCase made = with_replicas(dense_model(), GetParam());
    made.plan.overlap.grad_reduce = made.plan.overlap.param_gather = overlaps;
    made.stack.gradients.fp32_reduction = false;
    const double one_way = others(n()) * kElement * parameters_of(made);
    made.plan.zero_stage = 1;
    const double norm = 2.0 * others(n()) * 4.0;
    EXPECT_NEAR(sent(made, Group::ShardInner), 2.0 * one_way + norm, 1.0);
    made.plan.zero_stage = 2;
    EXPECT_NEAR(sent(made, Group::ShardInner), (1.0 + kMicrobatches) * one_way + norm, 1.0);
  }
}

// Gathers for forward and backward and a reduce-scatter for each microbatch: 3 P w, but that the
// embedding's backward pass reads no parameters.
TEST_P(VolumeOfRanks, ZeroThree) {
  LoweringCase made = with_replicas(dense_model(), GetParam());
  made.stack.gradients.fp32_reduction = false;
  made.plan.zero_stage = 3;
  const auto embedding = static_cast<double>(made.model.vocab * made.model.hidden);
  const double gathered_and_reduced = 3.0 * parameters_of(made) - embedding;
  const double norm = 2.0 * others(n()) * 4.0;
  EXPECT_NEAR(sent(made, Group::ShardInner),
              kMicrobatches * others(n()) * kElement * gathered_and_reduced + norm, 1.0);
}

// Hybrid sharding: the same inside, and one all-reduce of the shards outside, however many
// microbatches are reduced inside.
TEST_P(VolumeOfRanks, HybridShard) {
  for (const int zero_stage : {1, 2, 3}) {
    for (const bool overlaps : {true, false}) {
      LoweringCase one = dense_model();
      one.stack.gradients.fp32_reduction = false;
      one.plan.zero_stage = zero_stage;
      one.plan.overlap.grad_reduce = overlaps;
      const LoweringCase inner = with_replicas(one, GetParam());
      LoweringCase made = with_replicas(one, 2 * GetParam());
      made.plan.shard_group = GetParam();
      EXPECT_NEAR(sent(made, Group::ShardInner), sent(inner, Group::ShardInner), 1.0);
      EXPECT_NEAR(sent(made, Group::ShardOuter),
                  2.0 * others(2.0) * kElement * parameters_of(made) / n(), 1.0);
    }
  }
}

// Megatron Core (finalize_model_grads.py): norms of heads see those of one tensor-parallel rank,
// and other norms with sequence parallelism its tokens.
TEST(Volume, GradientsOfNormsOfHeadsAreAddedUpOverTheTensorGroup) {
  for (const bool sequence_parallel : {false, true}) {
    LoweringCase made = dense_model();
    made.plan.tp = 2;
    made.plan.sequence_parallel = sequence_parallel;
    const auto of_norms = [&](bool heads) {
      made.model.attention.qk_norm = heads;
      double bytes = 0.0;
      for (const Block& block : made.lower().blocks) {
        for (const Op& op : block.ops) {
          if (op.payload == Payload::ReplicatedGradients)
            bytes += std::get<CommunicationWork>(op.work).bytes.value();
        }
      }
      return bytes;
    };
    EXPECT_EQ(of_norms(true) - of_norms(false), kLayers * 2.0 * 8.0 * 4.0);
    EXPECT_EQ(of_norms(false) > 0.0, sequence_parallel);
  }
}

// Keys and values of s/c tokens go around to the c-1 other ranks; backward their gradients, too.
TEST_P(VolumeOfRanks, RingAttention) {
  LoweringCase made = dense_model();
  made.plan.cp = GetParam();
  made.plan.context_parallel = ContextParallelKind::Ring;
  const double kv = 2.0 * kMicrobatchTokens * 4.0 * 8.0 * kElement;
  const double expected = kMicrobatches * kLayers * 3.0 * kv * others(n());
  EXPECT_NEAR(sent(made, Group::Context), expected, 1.0);
  // Gathered keys and values take the same way, and again in the backward pass.
  made.plan.context_parallel = ContextParallelKind::AllGather;
  EXPECT_NEAR(sent(made, Group::Context), expected, 1.0);
  // A ring needs a fused kernel; without one, keys and values are gathered.
  made.plan.context_parallel = ContextParallelKind::Ring;
  made.stack.fusion.flash_attention = false;
  EXPECT_NEAR(sent(made, Group::Context), expected, 1.0);
}

// Queries, keys, values and outputs change between sequence and heads: for as many key/value heads
// as query heads 4 N h / n forward, and as much backward.
TEST_P(VolumeOfRanks, Ulysses) {
  LoweringCase made = dense_model();
  made.model.attention.kv_heads = 8;
  made.plan.cp = GetParam();
  made.plan.context_parallel = ContextParallelKind::Ulysses;
  const double each_way = 4.0 * kMicrobatchTokens * kWidth / n() * kElement * others(n());
  EXPECT_NEAR(sent(made, Group::Context), kMicrobatches * kLayers * 2.0 * each_way, 1.0);
}

// s b h per boundary, microbatch and direction; sent in parts of a sequence-parallel rank.
TEST_P(VolumeOfRanks, Pipeline) {
  for (const std::int64_t tp : {1, 2}) {
    LoweringCase made = dense_model();
    made.plan.pp = GetParam();
    made.plan.tp = tp;
    const double message = kMicrobatchTokens * kWidth * kElement / static_cast<double>(tp);
    EXPECT_NEAR(sent(made, Group::Pipeline), 2.0 * (n() - 1.0) * kMicrobatches * message, 1.0);
  }
}

INSTANTIATE_TEST_SUITE_P(Degrees, VolumeOfRanks, testing::Values(1, 2, 4));

// Interleaving: a message at each boundary of v p chunks.
TEST(Volume, InterleavedPipelineSendsOncePerChunkBoundary) {
  LoweringCase made = dense_model();
  made.plan.pp = 2;
  made.plan.vpp = 2;
  made.plan.schedule = ScheduleKind::Interleaved;
  made.plan.global_batch = 8;
  EXPECT_NEAR(sent(made, Group::Pipeline), 2.0 * 3.0 * 4.0 * kMicrobatchTokens * kWidth * kElement,
              1.0);
}

// Dispatch and combine, forward and backward: 4 (s b / (t c)) k h w (1 - 1/e) per layer.
TEST(Volume, ExpertParallel) {
  for (const auto& [ep, tp, cp] : {std::tuple{2, 1, 1}, {4, 1, 1}, {4, 2, 1}, {2, 2, 2}}) {
    LoweringCase made = with_replicas(dense_model(), 4);
    made.model.moe = MoeSpec{.experts = 8, .top_k = 3, .expert_ffn = 32};
    made.plan.ep = ep;
    made.plan.tp = tp;
    made.plan.cp = cp;
    const double per_layer = 4.0 * kMicrobatchTokens / (tp * cp) * 3.0 * kWidth * kElement *
                             others(static_cast<double>(ep));
    EXPECT_NEAR(sent(made, Group::Expert), kMicrobatches * kLayers * per_layer, 1.0);
  }
}

// The first and the last stage add up the gradient of an embedding that both hold once: of a tied
// one, or of the one with which a multi-token-prediction layer embeds the next token.
TEST(Volume, SharedEmbedding) {
  LoweringCase made = dense_model();
  made.plan.pp = 2;
  const double gradient = 4.0 * static_cast<double>(made.model.vocab * made.model.hidden);
  made.model.tied_embeddings = true;
  EXPECT_NEAR(sent(made, Group::EmbeddingTie), 2.0 * gradient, 1.0);
  made.model.tied_embeddings = false;
  made.model.mtp_layers = 1;
  EXPECT_NEAR(sent(made, Group::EmbeddingTie), 2.0 * gradient, 1.0);
  made.plan.multi_token_prediction = false;
  EXPECT_EQ(sent(made, Group::EmbeddingTie), 0.0);
}

// Per depth, as Megatron Core lays it out: the embedding's reduction, the gather of both states
// before the projection and of its output after it, a layer, and the head; and their gradients.
TEST_P(VolumeOfRanks, MultiTokenPrediction) {
  LoweringCase made = dense_model();
  made.plan.tp = GetParam();
  const double without = sent(made, Group::Tensor);
  made.model.mtp_layers = 1;
  const double half = others(n()) * kMicrobatchTokens * kWidth * kElement;
  const double loss = 2.0 * others(n()) * kMicrobatchTokens * 12.0;
  const double layer = 10.0 * half, embedding = 2.0 * half, head = 3.0 * half;
  const double join = 3.0 * 2.0 * half + 2.0 * half;
  const double norms = 2.0 * others(n()) * 5.0 * kWidth * 4.0;
  EXPECT_NEAR(sent(made, Group::Tensor) - without,
              kMicrobatches * (layer + embedding + head + join + loss) + norms, 1.0);
}

// DualPipe holds each part of the model on two ranks, which add up what each of them knows of its
// gradient.
TEST(Volume, DualPipeAddsUpTheGradientsOfBothCopies) {
  LoweringCase made = dense_model();
  made.plan.pp = 4;
  made.plan.schedule = ScheduleKind::DualPipe;
  made.plan.global_batch = 16;
  const double parameters = static_cast<double>(count_parameters(made.model).total);
  // 2 (n-1)/n of one fp32 number per parameter, n = 2, on each of the two ranks.
  EXPECT_NEAR(sent(made, Group::Mirror), 2.0 * 4.0 * parameters, 1.0);
  // Sharded over data-parallel ranks, each adds up its own shard.
  LoweringCase sharded = with_replicas(made, 2);
  sharded.plan.zero_stage = 1;
  EXPECT_NEAR(sent(sharded, Group::Mirror), 4.0 * parameters, 1.0);
}

TEST(Volume, BytesSentAreBytesReceivedAndEachMicrobatchPassesOnce) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const LoweringCase made = CaseGenerator(seed).next();
    const Program program = made.lower();
    double out = 0.0, in = 0.0, message = 0.0;
    for (const RankVolumes& stage : volumes(program)) {
      out += stage.of(Group::Pipeline).value();
      in += stage.received_messages.value();
    }
    for (const Block& block : program.blocks) {
      if (block.ops.size() == 1 && block.ops.front().kind == OpKind::Send)
        message = std::get<CommunicationWork>(block.ops.front().work).bytes.value();
    }
    EXPECT_DOUBLE_EQ(out, in) << shown(made);
    // The middle boundary of a V lies inside of the last stage.
    const std::int64_t inside = made.plan.schedule == ScheduleKind::ZbV ? 1 : 0;
    const std::int64_t boundaries = made.plan.chunks() - 1 - inside;
    EXPECT_DOUBLE_EQ(out, static_cast<double>(2 * boundaries * made.plan.microbatches()) * message)
        << shown(made);
  }
}

}  // namespace
}  // namespace shardwright
