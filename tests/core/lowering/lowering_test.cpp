// Single decisions of the lowering that the laws over random programs do not see.
#include "core/lowering/lowering.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/lowering/block_set.hpp"
#include "core/lowering/modules/block_writer.hpp"
#include "core/program/groups.hpp"
#include "core/program/shard_shape.hpp"
#include "core/program/validate.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "tests/core/lowering/random_lowering.hpp"
#include "tests/core/program/volumes.hpp"

namespace shardwright {
namespace {

LoweringCase dense() {
  LoweringCase made = small_case(4);
  made.plan.global_batch = 4;
  return made;
}

std::vector<Op> ops_of(const Program& program, const std::string& block) {
  const auto found =
      std::ranges::find_if(program.blocks, [&](const Block& each) { return each.name == block; });
  return found == program.blocks.end() ? std::vector<Op>{} : found->ops;
}

// MLA reads the norm's output in two projections; their input gradients must be added up.
TEST(Lowering, AddsUpTheGradientsOfBothLatentProjections) {
  for (const std::int64_t q_rank : {0, 16}) {
    LoweringCase made = dense();
    made.model.attention = {.kind = AttentionKind::MultiHeadLatent,
                            .heads = 8,
                            .kv_heads = 8,
                            .head_dim = 12,
                            .q_lora_rank = q_rank,
                            .kv_lora_rank = 16,
                            .qk_nope_head_dim = 8,
                            .qk_rope_head_dim = 4,
                            .v_head_dim = 8};
    const Program program = made.lower();
    int writers = 0, adders = 0;
    for (const Op& op : ops_of(program, "layer.backward")) {
      for (const TensorRef ref : op.writes) {
        if (program.tensors[ref.tensor].name != "attention.norm.out.gradient") continue;
        ++writers;
        adders += std::ranges::count(op.reads, ref) > 0 ? 1 : 0;
      }
    }
    EXPECT_EQ(writers, 2);
    EXPECT_EQ(adders, 1);
  }
}

// Two buffers of a ring take turns, so a shift must not overrun the attention two steps before.
TEST(Lowering, RingShiftWaitsForTheAttentionThatReadsItsBuffer) {
  LoweringCase made = dense();
  made.plan.cp = 4;
  const std::vector<Op> ops = ops_of(made.lower(), "layer.forward");
  const auto index = [&](const std::string& name) {
    return static_cast<std::uint16_t>(
        std::ranges::find_if(ops, [&](const Op& op) { return op.name == name; }) - ops.begin());
  };
  const Op& shift = ops.at(index("attention.core.ring_shift.2"));
  EXPECT_EQ(shift.waits, std::vector<std::uint16_t>{index("attention.core.1")});
}

// A first chunk that holds the embedding alone hands over the input of layer 0.
TEST(Lowering, AStageOfTheEmbeddingAloneFeedsTheFirstLayer) {
  LoweringCase made = dense();
  made.plan.pp = 3;
  made.plan.stage_layers = {0, 4, 0};
  const Program program = made.lower();
  EXPECT_TRUE(validate(program).empty());
  std::vector<std::int32_t> boundaries;
  for (const Call& call : program.stages[0].calls) {
    const std::vector<Op>& ops = program.blocks[call.block].ops;
    if (!ops.empty() && ops.front().kind == OpKind::Send) boundaries.push_back(call.layer);
  }
  EXPECT_EQ(boundaries, std::vector<std::int32_t>(4, 0));
}

// The gather of the incoming gradient runs on another stream than the norm that computed it.
TEST(Lowering, FirstCollectiveOfABackwardBlockWaitsForTheBlockBefore) {
  LoweringCase made = dense();
  made.plan.tp = 2;
  const Program program = made.lower();
  const RankProgram& rank = program.stages.front();
  std::size_t checked = 0;
  for (std::size_t c = 1; c + 1 < rank.calls.size(); ++c) {
    const Call& call = rank.calls[c];
    if (program.blocks[call.block].name != "layer.backward") continue;
    ASSERT_EQ(program.blocks[call.block].ops.front().stream, Stream::TensorParallel);
    ASSERT_LT(call.first_wait, rank.calls[c + 1].first_wait);
    EXPECT_EQ(rank.waits[call.first_wait].op, call.first_op);
    EXPECT_EQ(rank.waits[call.first_wait].on, call.first_op - 1);
    ++checked;
  }
  EXPECT_EQ(checked, 16U);
}

// A head without parameters of its own (tied, no final norm) has nothing to gather or reduce.
TEST(Lowering, ShardsNoParametersWhereThereAreNone) {
  LoweringCase made = dense();
  made.model.tied_embeddings = true;
  made.model.final_norm = false;
  made.plan.dp = 2;
  made.plan.zero_stage = 3;
  const Program program = made.lower();
  EXPECT_TRUE(validate(program).empty());
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      const auto* work = std::get_if<CommunicationWork>(&op.work);
      EXPECT_TRUE(work == nullptr || work->bytes > Bytes()) << op.name;
    }
  }
}

// ZeRO-3 of a dense model on one replica has nothing to split, however many ranks a tensor is cut
// over.
TEST(Lowering, ShardsNothingOnOneReplica) {
  LoweringCase made = dense();
  made.plan.tp = 2;
  made.plan.zero_stage = 3;
  for (const Block& block : made.lower().blocks) {
    for (const Op& op : block.ops) {
      const auto* work = std::get_if<CommunicationWork>(&op.work);
      EXPECT_TRUE(work == nullptr || axis_of(work->group) != Axis::Data) << op.name;
    }
  }
}

bool has_op(const Program& program, const std::string& name) {
  return std::ranges::any_of(program.blocks, [&](const Block& block) {
    return std::ranges::any_of(block.ops, [&](const Op& op) { return op.name == name; });
  });
}

TEST(Lowering, RunsAFinalNormOnlyWhereTheModelHasOne) {
  LoweringCase made = dense();
  for (const std::int64_t tp : {1, 2}) {
    made.plan.tp = tp;
    for (const bool norm : {true, false}) {
      made.model.final_norm = norm;
      const Program program = made.lower();
      EXPECT_EQ(has_op(program, "head.norm"), norm);
      EXPECT_EQ(has_op(program, "head.norm.backward"), norm);
      EXPECT_TRUE(validate(program).empty());
    }
  }
}

TEST(Lowering, EmbeddingPassesItsGradientThroughDropoutAndNorm) {
  LoweringCase made = dense();
  made.model.dropout = 0.1;
  made.model.embedding_norm = true;
  const Program program = made.lower();
  const std::vector<Op> ops = ops_of(program, "embedding.backward");
  std::vector<std::string> names;
  for (const Op& op : ops) names.push_back(op.name);
  EXPECT_EQ(names, (std::vector<std::string>{"embedding.dropout.backward",
                                             "embedding.norm.backward", "embedding.backward"}));
  EXPECT_TRUE(validate(program).empty());
}

// The elements of each message of a kind on the first stage.
std::vector<double> message_elements(const Program& program, OpKind kind, double element_bytes) {
  std::vector<double> elements;
  for (const Call& call : program.stages.front().calls) {
    for (const Op& op : program.blocks[call.block].ops) {
      if (op.kind == kind)
        elements.push_back(std::get<CommunicationWork>(op.work).bytes.value() / element_bytes);
    }
  }
  return elements;
}

// Megatron Core makes buckets of 40 million parameters, of a million a rank where that is more,
// both of fp32 gradients and of the bf16 parameters that are gathered.
TEST(Lowering, BucketsOfManyReplicasAreLarger) {
  const ModelSpec model = load_model("llama3-8b");
  const StackSpec stack = load_stack("megatron-core");
  const auto parameters = static_cast<double>(count_parameters(model).total);
  Plan plan;
  plan.zero_stage = 1;
  for (const std::int64_t dp : {8, 40, 200, 1000, 100'000}) {
    plan.dp = plan.global_batch = dp;
    const Program program = lower(model, plan, stack);
    const double least = std::max(40e6, 1e6 * static_cast<double>(dp));
    for (const auto& [kind, bytes] :
         {std::pair(OpKind::ReduceScatter, 4.0), std::pair(OpKind::AllGather, 2.0)}) {
      const std::vector<double> buckets = message_elements(program, kind, bytes);
      ASSERT_FALSE(buckets.empty());
      for (std::size_t i = 0; i + 1 < buckets.size(); ++i) EXPECT_GE(buckets[i], least) << dp;
      EXPECT_LE(static_cast<double>(buckets.size()), parameters / least + 1.0) << dp;
      EXPECT_NEAR(std::accumulate(buckets.begin(), buckets.end(), 0.0), parameters, 1.0) << dp;
    }
  }
}

// Over one rank nothing is sharded, so nothing is gathered, and gradients are added up in place.
TEST(Lowering, FsdpOverOneRankGathersNothing) {
  LoweringCase made = dense();
  made.plan.zero_stage = 3;
  EXPECT_FALSE(has_op(made.lower(), "parameters.all_gather"));
  made.plan.dp = 2;
  EXPECT_TRUE(has_op(made.lower(), "parameters.all_gather"));
  made.plan.shard_group = 1;  // whole copies, as replicas
  const Program program = made.lower();
  EXPECT_FALSE(has_op(program, "parameters.all_gather"));
  EXPECT_TRUE(has_op(program, "gradients.all_reduce"));
  EXPECT_TRUE(validate(program).empty());
}

// Each rank beyond the key/value heads holds a whole one.
TEST(Lowering, CountsReplicatedKeyValueHeadsOnEachRank) {
  LoweringCase made = dense();
  made.model.attention.kv_heads = 2;
  made.plan.tp = 8;
  const std::vector<ParameterTensor> tensors = layer_parameters(made.model, 0);
  const double query_and_output = 2.0 * 64.0 * 8.0, key_and_value = 2.0 * 64.0 * 8.0;
  const double ffn = 3.0 * 64.0 * 16.0, norms = 2.0 * 64.0;
  EXPECT_DOUBLE_EQ(rank_parameters(tensors, made.plan).dense,
                   query_and_output + key_and_value + ffn + norms);
}

LoweringCase sparse() {
  LoweringCase made = dense();
  made.model.moe = MoeSpec{
      .experts = 8, .top_k = 2, .expert_ffn = 32, .shared_experts = 1, .shared_expert_ffn = 32};
  made.plan.dp = made.plan.ep = 2;
  return made;
}

// FLOP on the compute stream between an exchange of tokens and the op that waits for it.
double hidden_flop(const std::vector<Op>& ops, const std::string& exchange) {
  std::size_t i = 0;
  while (ops.at(i).name != exchange) ++i;
  const auto at = static_cast<std::uint16_t>(i);
  double flop = 0.0;
  for (++i; i < ops.size(); ++i) {
    const std::vector<std::uint16_t>& waits = ops[i].waits;
    if (std::ranges::find(waits, at) != waits.end()) break;
    flop += model_flop(ops[i].work).value();
  }
  return flop;
}

// The two halves of the shared experts run while tokens travel, where stack and plan say so.
TEST(Lowering, SharedExpertsHideTheExchangeOfTokens) {
  LoweringCase made = sparse();
  const double up = 2.0 * 64.0 * 64.0 * 64.0, down = up / 2.0;
  for (const bool able : {false, true}) {
    for (const bool wanted : {false, true}) {
      made.stack.overlap.expert_parallel = able;
      made.plan.overlap.expert_parallel = wanted;
      const Program program = made.lower();
      const std::vector<Op> forward = ops_of(program, "layer.forward"),
                            backward = ops_of(program, "layer.backward");
      const double on = able && wanted ? 1.0 : 0.0;
      EXPECT_DOUBLE_EQ(hidden_flop(forward, "experts.dispatch"), on * up);
      EXPECT_DOUBLE_EQ(hidden_flop(forward, "experts.combine"), on * down);
      EXPECT_DOUBLE_EQ(hidden_flop(backward, "experts.combine.gradient"), on * 2.0 * down);
      EXPECT_DOUBLE_EQ(hidden_flop(backward, "experts.dispatch.gradient"), on * 2.0 * up);
      EXPECT_TRUE(validate(program).empty());
    }
  }
}

// All layers of a chunk but the last go to the host and come back, each byte once; the activations
// that they keep are gone from the device meanwhile.
TEST(Lowering, OffloadsActivationsOfAllButTheLastLayer) {
  LoweringCase made = dense();
  const BlockSet blocks = make_blocks(made.model, made.plan, made.stack);
  const double kept =
      kept_bytes(blocks.blocks[blocks.kept.front().forward], blocks.tensors).value();
  made.plan.offload_activations = true;
  const Program program = made.lower();
  EXPECT_TRUE(validate(program).empty());
  double stored = 0.0, fetched = 0.0;
  for (const Call& call : program.stages.front().calls) {
    for (const Op& op : program.blocks[call.block].ops) {
      if (op.kind != OpKind::Offload) continue;
      EXPECT_EQ(op.stream, Stream::Offload);
      stored += std::get<MemoryWork>(op.work).read.value();
      fetched += std::get<MemoryWork>(op.work).written.value();
    }
  }
  // The layer's output is the next one's input, and stays.
  const double output = 64.0 * 64.0 * 2.0;
  EXPECT_DOUBLE_EQ(stored, 4.0 * 3.0 * (kept - output));
  EXPECT_DOUBLE_EQ(fetched, stored);
}

// Bytes that the first stage copies to the host.
double stored_bytes(const LoweringCase& made) {
  double stored = 0.0;
  const Program program = made.lower();
  for (const Call& call : program.stages.front().calls)
    for (const Op& op : program.blocks[call.block].ops)
      if (op.kind == OpKind::Offload) stored += std::get<MemoryWork>(op.work).read.value();
  return stored;
}

TEST(Lowering, OffloadsAShareOfTheLayersOrOfTheirActivations) {
  LoweringCase made = dense();
  made.plan.offload_activations = true;
  const double all = stored_bytes(made);
  const std::int64_t layers = made.model.layers;
  for (std::int64_t some = 1; some < layers; ++some) {
    made.plan.offload_layers = some;
    EXPECT_DOUBLE_EQ(stored_bytes(made),
                     all * static_cast<double>(some) / static_cast<double>(layers - 1));
  }
  made.plan.offload_layers = layers;
  EXPECT_DOUBLE_EQ(stored_bytes(made), all);
  made.plan.offload_layers = 0;
  for (const double ratio : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    made.plan.offload_ratio = ratio;
    EXPECT_LE(stored_bytes(made), ratio * all);
    EXPECT_GE(stored_bytes(made), (ratio - 0.15) * all);
    EXPECT_TRUE(validate(made.lower()).empty());
  }
}

// Modules share no tensors, so what they store adds up, to no more than a layer keeps.
TEST(Lowering, OffloadsTheInputsOfModules) {
  using enum OffloadModule;
  LoweringCase made = dense();
  made.model.moe = MoeSpec{};
  made.model.moe->experts = 8;
  made.model.moe->top_k = 2;
  made.model.moe->expert_ffn = 32;
  made.plan.offload_activations = true;
  const double all = stored_bytes(made);
  const double layers =
      static_cast<double>(made.model.layers - 1) * static_cast<double>(made.plan.microbatches());
  const double tokens = static_cast<double>(made.plan.seq_len * made.plan.micro_batch);
  const auto hidden = static_cast<double>(made.model.hidden);
  const auto stored = [&](OffloadModuleSet modules) {
    made.plan.offload_modules = modules;
    EXPECT_TRUE(validate(made.lower()).empty()) << names_of(modules);
    return stored_bytes(made);
  };
  EXPECT_DOUBLE_EQ(stored({QkvLinear}), layers * tokens * hidden * 2.0);
  EXPECT_DOUBLE_EQ(stored({MlpNorm}), layers * tokens * hidden * 2.0);
  EXPECT_DOUBLE_EQ(stored({ExpertFc1}), layers * 2.0 * tokens * hidden * 2.0);
  const double widths = made.model.mlp.gated ? 2.0 : 1.0;
  EXPECT_DOUBLE_EQ(stored({MoeActivation}), layers * 2.0 * tokens * widths * 32.0 * 2.0);
  double sum = 0.0;
  for (const OffloadModule module : enumerators<OffloadModule>()) sum += stored({module});
  const double listed =
      stored({QkvLinear, CoreAttention, AttentionProjection, MlpNorm, ExpertFc1, MoeActivation});
  EXPECT_DOUBLE_EQ(listed, sum);
  EXPECT_LT(listed, all);
  EXPECT_GT(listed, 0.7 * all);
}

// 61 layers and one more on 16 stages: 62 / 16, of which the last stage runs the one. Where a stage
// has one layer there is no room for it.
TEST(Lowering, EvenSplitsLeaveRoomForMultiTokenPrediction) {
  LoweringCase made = dense();
  made.model.layers = 61;
  made.plan.pp = 16;
  const auto last = [&made] { return split_layers(made.model, made.plan).back(); };
  EXPECT_EQ(last(), (LayerRange{58, 3}));
  made.model.mtp_layers = 1;
  EXPECT_EQ(last(), (LayerRange{59, 2}));
  made.plan.multi_token_prediction = false;
  EXPECT_EQ(last(), (LayerRange{58, 3}));
  made.plan.multi_token_prediction = true;
  made.model.layers = 16;
  made.model.mtp_layers = 2;
  made.plan.head_counts_as_layer = true;
  EXPECT_EQ(last(), (LayerRange{16, 0}));
}

// Megatron's selective recomputation of the attention core runs a fused kernel again, too.
TEST(Lowering, SelectiveRecomputationRunsTheAttentionCoreAgain) {
  LoweringCase made = dense();
  made.plan.recompute = RecomputePolicy::Selective;
  for (const bool flash : {true, false}) {
    made.stack.fusion.flash_attention = flash;
    const std::vector<Op> ops = ops_of(made.lower(), "layer.backward");
    const auto recomputed = std::count_if(
        ops.begin(), ops.end(), [](const Op& op) { return op.phase == Phase::Recompute; });
    EXPECT_EQ(recomputed, flash ? 1 : 3);  // scores, softmax, context
  }
}

}  // namespace
}  // namespace shardwright
