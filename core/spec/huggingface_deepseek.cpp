// Readers of DeepSeek-V2 (arXiv 2405.04434) and DeepSeek-V3 (arXiv 2412.19437): multi-head latent
// attention, shared experts, leading dense layers. GLM-4.5 (arXiv 2508.06471) has the same experts
// behind grouped-query attention.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/spec/huggingface_config.hpp"
#include "core/spec/model_limits.hpp"

namespace shardwright::huggingface {
namespace {

AttentionSpec read_latent_attention(ObjectReader& config, std::int64_t heads) {
  AttentionSpec attention;
  attention.kind = AttentionKind::MultiHeadLatent;
  attention.heads = heads;
  attention.kv_heads = heads;
  // A null rank, as in DeepSeek-V2-Lite, projects queries directly.
  const std::int64_t missing = mentions(config, "q_lora_rank") ? 0 : 1536;
  attention.q_lora_rank = config.integer_or("q_lora_rank", missing, kWidthRange);
  attention.kv_lora_rank = config.integer_or("kv_lora_rank", 512, kWidthRange);
  attention.qk_nope_head_dim = config.integer_or("qk_nope_head_dim", 128, kHeadDimRange);
  attention.qk_rope_head_dim = config.integer_or("qk_rope_head_dim", 64, kHeadDimRange);
  attention.v_head_dim = config.integer_or("v_head_dim", 128, kHeadDimRange);
  attention.head_dim = attention.qk_nope_head_dim + attention.qk_rope_head_dim;
  attention.qkv_bias = config.boolean_or("attention_bias", false);
  attention.output_bias = attention.qkv_bias;
  return attention;
}

// Each token's experts are of `topk_group` of the `n_group` groups of equal size.
void read_expert_groups(ObjectReader& config, MoeSpec& moe) {
  const std::int64_t groups = config.integer_or("n_group", 1, kExpertOrZeroRange);
  // A number of experts that was refused already has a problem of its own.
  if (groups <= 1 || config.raw("n_routed_experts") != moe.experts) return;
  if (moe.experts % groups != 0) {
    config.problem("n_group", fmt::format("{}", groups),
                   fmt::format("a divisor of the {} routed experts", moe.experts));
    return;
  }
  const std::int64_t chosen = config.integer_or("topk_group", 0, kExpertOrZeroRange);
  if (chosen > groups) {
    config.problem("topk_group", fmt::format("{}", chosen),
                   fmt::format("at most the {} groups", groups));
  } else if (chosen > 0 && moe.top_k > chosen * (moe.experts / groups)) {
    config.problem("topk_group", fmt::format("{}", chosen),
                   fmt::format("so many that they hold the {} experts of a token", moe.top_k));
  }
  moe.token_nodes = chosen;
}

MoeSpec read_experts(ObjectReader& config, std::int64_t first_dense_layers,
                     std::int64_t shared_experts = 0) {
  MoeSpec moe;
  moe.experts = config.integer("n_routed_experts", kExpertRange);
  moe.top_k = config.integer("num_experts_per_tok", kExpertRange);
  moe.expert_ffn = config.integer("moe_intermediate_size", kWidthRange);
  moe.renormalised = config.boolean_or("norm_topk_prob", true);
  moe.shared_experts = config.integer_or("n_shared_experts", shared_experts, kExpertOrZeroRange);
  moe.shared_expert_ffn = moe.shared_experts * moe.expert_ffn;
  moe.first_dense_layers =
      config.integer_or("first_k_dense_replace", first_dense_layers, kLayerCountOrZeroRange);
  read_expert_groups(config, moe);
  const std::int64_t interval = config.integer_or("moe_layer_freq", 1, kLayerRange);
  if (interval != 1) {
    config.problem("moe_layer_freq", fmt::format("{}", interval),
                   "1: dense layers among the sparse ones are not supported");
  }
  return moe;
}

ModelSpec read_deepseek(ObjectReader& config, std::int64_t first_dense_layers) {
  ModelSpec model = read_sizes(config);
  model.attention = read_latent_attention(config, model.attention.heads);
  model.max_seq_len = config.integer_or(spelling(config, kSequenceKeys), 2048, kTokenRange);
  model.mlp.ffn_hidden = config.integer("intermediate_size", kWidthRange);
  model.mlp.activation = read_activation(config, "silu");
  model.norm_epsilon = read_norm_epsilon(config, 1e-6);
  read_rotary_angles(config, model, 10'000.0);
  model.tied_embeddings = config.boolean_or("tie_word_embeddings", false);
  if (config.has("n_routed_experts")) model.moe = read_experts(config, first_dense_layers);
  return model;
}

}  // namespace

ModelSpec read_deepseek_v2(ObjectReader& config) {
  ModelSpec model = read_deepseek(config, 0);
  if (model.moe) model.moe->renormalised = config.boolean_or("norm_topk_prob", false);
  return model;
}

ModelSpec read_deepseek_v3(ObjectReader& config) {
  ModelSpec model = read_deepseek(config, 3);
  if (model.moe) {
    model.moe->router_bias = config.text_or("topk_method", "noaux_tc") == "noaux_tc";
  }
  model.mtp_layers = config.integer_or("num_nextn_predict_layers", 0, kLayerCountOrZeroRange);
  return model;
}

ModelSpec read_deepseek_v32(ObjectReader& config) {
  ModelSpec model = read_deepseek_v3(config);
  model.not_simulated.emplace_back(
      "the indexer of the sparse attention, with its parameters: attention sees all tokens");
  return model;
}

ModelSpec read_glm4_moe(ObjectReader& config) {
  ModelSpec model =
      read_gated(config, {.max_seq_len = 131'072, .kv_heads = 8, .norm_epsilon = 1e-5});
  model.attention.qkv_bias = config.boolean_or("attention_bias", false);
  model.attention.qk_norm = config.boolean_or("use_qk_norm", false);
  model.rotary_share = read_rotary_share(config, "partial_rotary_factor", 0.5);
  model.moe = read_experts(config, 1, 1);
  model.moe->router_bias = true;
  model.mtp_layers = config.integer_or("num_nextn_predict_layers", 0, kLayerCountOrZeroRange);
  return model;
}

}  // namespace shardwright::huggingface
