// FLOP of random programs against the formula of their model, phase by phase.
//
// T tokens, W weights of the matrix products that a token meets, A FLOP of attention forward:
//   forward            2 T W + A
//   recompute          the same over the recomputed layers (selective: over the recomputed modules)
//   backward by input  2 T W + A'    A' = 2 A; 2.5 A where the scores are computed anew (fused)
//   backward by weight 2 T W
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "core/program/shard_shape.hpp"
#include "core/program/validate.hpp"
#include "core/schedule/pipeline_schedule.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "tests/core/lowering/random_lowering.hpp"
#include "tests/core/program/volumes.hpp"

namespace shardwright {
namespace {

// Copies of a product that ranks of one tensor-parallel group compute alike.
double copies(const LoweringCase& made) {
  return made.plan.sequence_parallel ? 1.0 : static_cast<double>(made.plan.tp);
}

double attention_weights(const LoweringCase& made) {
  const AttentionSpec& a = made.model.attention;
  const std::int64_t hidden = made.model.hidden;
  if (a.kind == AttentionKind::GroupedQuery) {
    // Key/value heads are replicated where there are more ranks than heads.
    const std::int64_t kv_heads = std::max(a.kv_heads, made.plan.tp);
    const std::int64_t query_and_output = a.output_gate ? 3 : 2;
    return static_cast<double>(hidden * a.head_dim * (query_and_output * a.heads + 2 * kv_heads));
  }
  const std::int64_t up = a.q_lora_rank > 0 ? a.q_lora_rank : hidden;
  const std::int64_t split = up * a.heads * a.head_dim +
                             a.kv_lora_rank * a.heads * (a.qk_nope_head_dim + a.v_head_dim) +
                             hidden * a.heads * a.v_head_dim;
  const std::int64_t whole = hidden * (a.q_lora_rank + a.kv_lora_rank + a.qk_rope_head_dim);
  return static_cast<double>(split) + static_cast<double>(whole) * copies(made);
}

// MLA's projections from its bottlenecks up.
double latent_up_weights(const LoweringCase& made) {
  const AttentionSpec& a = made.model.attention;
  const std::int64_t q = a.q_lora_rank > 0 ? a.q_lora_rank : made.model.hidden;
  return static_cast<double>(
      a.heads * (q * a.head_dim + a.kv_lora_rank * (a.qk_nope_head_dim + a.v_head_dim)));
}

double mixer_weights(const LoweringCase& made, LayerMixer mixer) {
  if (mixer == LayerMixer::None) return 0.0;
  if (mixer == LayerMixer::Attention) return attention_weights(made);
  const LinearAttentionSpec& linear = *made.model.linear_attention;
  return static_cast<double>(made.model.hidden * (linear.in_width() + linear.value_width()));
}

// Mamba-2 (arXiv 2405.21060, section 6), per token: scores of a group 2 Q N, their product with a
// head's values 2 Q P, writing and reading its state 4 N P. The delta rule (arXiv 2412.06464,
// section 3.3) has scores for each head, and four products more, of which three work on the keys:
// 2 Q N, 2 Q (N + P), 2 N P. `states`: what the states at the ends of chunks need.
struct Recurrence {
  double whole = 0.0, states = 0.0;
};
Recurrence recurrence(const LoweringCase& made) {
  const LinearAttentionSpec& linear = *made.model.linear_attention;
  const auto q = static_cast<double>(linear.chunk), n = static_cast<double>(linear.state_dim);
  const auto p = static_cast<double>(linear.head_dim), heads = static_cast<double>(linear.heads);
  const auto groups = static_cast<double>(linear.key_heads);
  if (linear.kind == LinearAttentionKind::Mamba2)
    return {groups * 2.0 * q * n + heads * (2.0 * q * p + 4.0 * n * p), heads * 2.0 * n * p};
  const double states = heads * (2.0 * q * n + 2.0 * q * (n + p) + 4.0 * n * p);
  return {states + heads * (2.0 * q * n + 2.0 * q * p + 2.0 * n * p), states};
}

double shared_expert_weights(const LoweringCase& made) {
  const ModelSpec& model = made.model;
  const double gate = model.moe->shared_expert_gate ? static_cast<double>(model.hidden) : 0.0;
  return gate * copies(made) + static_cast<double>((model.mlp.gated ? 3 : 2) * model.hidden *
                                                   model.moe->shared_expert_ffn);
}

double ffn_weights(const LoweringCase& made, LayerFfn ffn) {
  const ModelSpec& model = made.model;
  const std::int64_t matrices = model.mlp.gated ? 3 : 2;
  if (ffn == LayerFfn::None) return 0.0;
  if (ffn == LayerFfn::Dense)
    return static_cast<double>(matrices * model.hidden * model.mlp.ffn_hidden);
  const MoeSpec& moe = *model.moe;
  const double routed =
      static_cast<double>(model.hidden * (moe.experts + matrices * moe.top_k * moe.expert_ffn));
  return routed * copies(made) + shared_expert_weights(made);
}

double layer_weights(const LoweringCase& made, std::int64_t layer) {
  const LayerParts parts = made.model.parts_of(layer);
  return mixer_weights(made, parts.mixer) + ffn_weights(made, parts.ffn);
}

// Returns the weights of the modules that selective recomputation runs again.
double rerun_weights(const LoweringCase& made, std::int64_t layer) {
  if (made.plan.recompute != RecomputePolicy::Selective) return 0.0;
  const LayerParts parts = made.model.parts_of(layer);
  const RecomputeModuleSet modules = made.plan.recompute_modules;
  const bool sparse = parts.ffn == LayerFfn::Experts;
  const bool latent = parts.mixer == LayerMixer::Attention &&
                      made.model.attention.kind == AttentionKind::MultiHeadLatent;
  double sum = 0.0;
  if (latent && modules.contains(RecomputeModule::MlaUpProjection)) sum += latent_up_weights(made);
  if (modules.contains(sparse ? RecomputeModule::Moe : RecomputeModule::Mlp))
    return sum + ffn_weights(made, parts.ffn);
  if (sparse && modules.contains(RecomputeModule::SharedExperts))
    sum += shared_expert_weights(made);
  return sum;
}

// Scores that are computed per token and head.
double scores(const LoweringCase& made, std::int64_t layer) {
  const auto s = static_cast<double>(made.plan.seq_len);
  if (!made.stack.fusion.flash_attention) return s;
  const auto window = static_cast<double>(made.model.sliding_window_of(layer));
  // The area below the diagonal, less the triangle that the window cuts off.
  return window == 0.0 || window >= s ? s / 2.0
                                      : (s * s / 2.0 - (s - window) * (s - window) / 2.0) / s;
}

struct ExpectedFlop {
  double forward = 0.0, recompute = 0.0, backward_input = 0.0, backward_weight = 0.0;
};

// The stage that runs each chunk, by the chunk's place in the model; one of two with DualPipe.
std::vector<std::int64_t> stages_of_chunks(const Plan& plan) {
  std::vector<std::int64_t> stages(static_cast<std::size_t>(plan.chunks()));
  const PipelineSchedule schedule = make_schedule(plan.schedule, shape_of(plan));
  for (std::size_t stage = 0; stage < schedule.position.size(); ++stage) {
    for (const std::int32_t position : schedule.position[stage])
      stages[static_cast<std::size_t>(position)] = static_cast<std::int64_t>(stage);
  }
  return stages;
}

ExpectedFlop expected_flop(const LoweringCase& made) {
  const Plan& plan = made.plan;
  const AttentionSpec& a = made.model.attention;
  const double tokens = static_cast<double>(plan.global_batch * plan.seq_len);
  const auto qk = static_cast<double>(a.heads * a.head_dim);
  const auto v = static_cast<double>(a.heads * a.value_head_dim());
  ExpectedFlop sum;
  const std::int64_t further = plan.multi_token_prediction ? made.model.mtp_layers : 0;
  std::vector<LayerRange> chunks = split_layers(made.model, plan);
  std::vector<std::int64_t> stages = stages_of_chunks(plan);
  // Multi-token-prediction layers are recomputed whatever the number of layers that are.
  for (std::int64_t depth = 0; depth < further; ++depth)
    chunks.push_back({made.model.layers + depth, 1});
  stages.resize(chunks.size());
  for (std::size_t position = 0; position < chunks.size(); ++position) {
    const LayerRange& chunk = chunks[position];
    for (std::int64_t i = 0; i < chunk.count; ++i) {
      const std::int64_t layer = chunk.first + i;
      const double weights = 2.0 * tokens * layer_weights(made, layer);
      const LayerMixer mixer = made.model.parts_of(layer).mixer;
      const double per_width =
          mixer == LayerMixer::Attention ? 2.0 * tokens * scores(made, layer) : 0.0;
      const bool fused = made.stack.fusion.flash_attention;
      const bool full = layer < made.model.layers
                            ? plan.recomputes_layer_of_chunk(i, stages[position])
                            : plan.reruns_layers();
      const bool core = recomputed_modules(made.stack.capabilities, plan)
                            .contains(RecomputeModule::CoreAttention);
      sum.forward += weights + per_width * (qk + v);
      sum.recompute += full ? weights : 2.0 * tokens * rerun_weights(made, layer);
      if (full || core) sum.recompute += per_width * (qk + v);
      sum.backward_input += weights + per_width * (fused ? 3.0 * qk + 2.0 * v : 2.0 * (qk + v));
      sum.backward_weight += weights;
      if (mixer != LayerMixer::LinearAttention) continue;
      // The backward pass computes the states anew.
      const Recurrence passes = recurrence(made);
      sum.forward += tokens * passes.whole;
      sum.recompute += tokens * (passes.states + (full ? passes.whole : 0.0));
      sum.backward_input += 2.0 * tokens * passes.whole;
    }
  }
  const std::int64_t vocab = (made.model.vocab + plan.tp - 1) / plan.tp * plan.tp;
  const auto hidden = static_cast<double>(made.model.hidden);
  const auto depths = static_cast<double>(further);
  const double head =
      2.0 * tokens * hidden * ((1.0 + depths) * static_cast<double>(vocab) + depths * 2.0 * hidden);
  sum.forward += head;
  sum.backward_input += head;
  sum.backward_weight += head;
  return sum;
}

// The FLOP of one rank of each stage.
std::array<double, kPhases> flop_by_phase(const Program& program) {
  std::array<double, kPhases> found{};
  for (const RankVolumes& stage : volumes(program)) {
    for (std::size_t i = 0; i < found.size(); ++i) found[i] += stage.flop[i].value();
  }
  return found;
}

void expect_formula(const std::array<double, kPhases>& found, const LoweringCase& made) {
  const auto ranks = static_cast<double>(made.plan.world_size() / made.plan.pp);
  const ExpectedFlop expected = expected_flop(made);
  const auto expect = [&](Phase phase, double flop) {
    const double sum = found[static_cast<std::size_t>(phase)] * ranks;
    // Per-op recomputation runs a part of the layer.
    if (phase == Phase::Recompute && made.plan.recompute == RecomputePolicy::PerOp) {
      ASSERT_LT(sum, flop) << shown(made);
      return;
    }
    ASSERT_NEAR(sum, flop, 1e-9 * flop) << name_of(phase) << ": " << shown(made);
  };
  expect(Phase::Forward, expected.forward);
  expect(Phase::Recompute, expected.recompute);
  expect(Phase::BackwardInput, expected.backward_input);
  expect(Phase::BackwardWeight, expected.backward_weight);
}

TEST(FlopOfPrograms, AddUpToTheModelsFormulaInEachPhase) {
  constexpr std::uint64_t kPrograms = 1500;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const LoweringCase made = CaseGenerator(seed).next();
    const auto found = flop_by_phase(made.lower());
    ASSERT_NO_FATAL_FAILURE(expect_formula(found, made)) << "seed " << seed;
  }
}

// 126 layers on 16 stages of 8 chunks, whose first has the embedding alone and whose last has the
// head alone (arXiv 2407.21783, section 3.3.2).
TEST(FlopOfPrograms, OfLlama405bWithBareEndsAddUp) {
  LoweringCase made{load_model("llama3.1-405b"), {}, load_stack("megatron-core")};
  made.plan.dp = 2;
  made.plan.tp = made.plan.vpp = 8;
  made.plan.pp = 16;
  made.plan.global_batch = 64;
  made.plan.seq_len = 8192;
  made.plan.schedule = ScheduleKind::Interleaved;
  made.plan.embedding_counts_as_layer = made.plan.head_counts_as_layer = true;
  ASSERT_TRUE(broken_rules(made.model, nullptr, made.plan).empty());
  const Program program = made.lower();
  EXPECT_TRUE(validate(program).empty());
  expect_formula(flop_by_phase(program), made);
}

// 6 N D: Kaplan et al. (arXiv 2001.08361), N without embeddings; GPT-3 175B has 96 layers of
// 12 h^2 weights.
TEST(FlopOfPrograms, OfGpt3LayersAreSixPerWeightAndToken) {
  LoweringCase made;
  made.model.layers = 96;
  made.model.hidden = 12'288;
  made.model.vocab = 1;
  made.model.attention = {.heads = 96, .kv_heads = 96, .head_dim = 128};
  made.model.mlp = {.ffn_hidden = 49'152, .gated = false};
  made.plan.seq_len = 2'048;
  const RankVolumes rank = volumes(made.lower()).front();
  double flop = 0.0;
  for (const Flop each : rank.flop) flop += each.value();
  const double weights = 96.0 * 12.0 * 12'288.0 * 12'288.0;
  // Causal attention adds s/2 scores per token of 4 h forward and 10 h backward.
  const double attention = 96.0 * 2'048.0 * 1'024.0 * 14.0 * 12'288.0;
  EXPECT_NEAR(flop, 6.0 * weights * 2'048.0 + attention + 6.0 * 12'288.0 * 2'048.0, 1e-9 * flop);
}

}  // namespace
}  // namespace shardwright
