// Readers of sparse and hybrid model types outside of the lines of Mixtral, Qwen and DeepSeek.
//
// The defaults are those of the configuration classes in
// https://github.com/huggingface/transformers/tree/main/src/transformers/models.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "core/spec/huggingface_config.hpp"
#include "core/spec/model_limits.hpp"

namespace shardwright::huggingface {
namespace {

// Experts whose width is the file's intermediate_size.
MoeSpec read_local_experts(ObjectReader& config, const ModelSpec& model, std::int64_t experts,
                           std::int64_t top_k) {
  MoeSpec moe;
  moe.experts = config.integer_or("num_local_experts", experts, kExpertRange);
  moe.top_k = config.integer_or("num_experts_per_tok", top_k, kExpertRange);
  moe.expert_ffn = model.mlp.ffn_hidden;
  return moe;
}

void add_shared_experts(MoeSpec& moe, std::int64_t count, std::int64_t width_of_all) {
  moe.shared_experts = width_of_all > 0 ? std::max<std::int64_t>(1, count) : 0;
  moe.shared_expert_ffn = width_of_all;
}

// Prediction layers that are not DeepSeek-V3's: `key` counts them.
void note_predictions(ObjectReader& config, const std::string& key, ModelSpec& model) {
  if (config.integer_or(key, 0, kLayerCountOrZeroRange) > 0)
    model.not_simulated.emplace_back("multi-token prediction");
}

}  // namespace

ModelSpec read_gpt_oss(ObjectReader& config) {
  ModelSpec model = read_gated(config, {.max_seq_len = 131'072,
                                        .kv_heads = 8,
                                        .head_dim = 64,
                                        .norm_epsilon = 1e-5,
                                        .rope_theta = 150'000.0});
  const bool bias = config.boolean_or("attention_bias", true);
  model.attention.qkv_bias = model.attention.output_bias = bias;
  model.attention.sinks = true;
  read_alternating_window(config, model, 2, 128);
  model.mlp.bias = model.mlp.clamped = true;
  model.moe = read_local_experts(config, model, 128, 4);
  model.moe->router_linear_bias = true;
  return model;
}

ModelSpec read_granitemoe(ObjectReader& config) {
  ModelSpec model = read_gated(config, {});
  read_attention_bias(config, model);
  model.moe = read_local_experts(config, model, 8, 2);
  return model;
}

// Llama 4: a shared expert beside each routed one; in some models each second layer is dense.
ModelSpec read_llama4_text(ObjectReader& config) {
  ModelSpec model = read_gated(config, {.max_seq_len = 131'072,
                                        .kv_heads = 8,
                                        .head_dim = 128,
                                        .norm_epsilon = 1e-5,
                                        .rope_theta = 500'000.0});
  read_attention_bias(config, model);
  model.moe = read_local_experts(config, model, 16, 1);
  add_shared_experts(*model.moe, 1, model.mlp.ffn_hidden);
  model.moe->layer_interval = config.integer_or("interleave_moe_layer_step", 1, kLayerRange);
  model.mlp.ffn_hidden = config.integer_or("intermediate_size_mlp", 16'384, kWidthRange);
  // Each fourth layer sees everything, the others the tokens of their chunk.
  model.attention.sliding_window = config.integer_or("attention_chunk_size", 8192, kTokenRange);
  model.attention.full_attention_interval =
      config.integer_or("no_rope_layer_interval", 4, kLayerRange);
  model.not_simulated.emplace_back(fmt::format(
      "attention within chunks of {} tokens, which is taken for a sliding window of that width",
      model.attention.sliding_window));
  return model;
}

ModelSpec read_minimax_m2(ObjectReader& config) {
  ModelSpec model = read_gated(
      config, {.max_seq_len = 196'608, .kv_heads = 8, .head_dim = 128, .rope_theta = 5'000'000.0});
  model.attention.qk_norm = model.attention.qk_norm_whole = config.boolean_or("use_qk_norm", true);
  if (config.has("rotary_dim")) {
    const auto rotated = static_cast<double>(config.integer("rotary_dim", kHeadDimRange));
    model.rotary_share = std::min(1.0, rotated / static_cast<double>(model.attention.head_dim));
  }
  model.moe = read_local_experts(config, model, 256, 8);
  model.moe->router_bias = config.boolean_or("use_routing_bias", true);
  add_shared_experts(*model.moe, 1,
                     config.integer_or("shared_intermediate_size", 0, kWidthOrZeroRange));
  if (config.boolean_or("use_mtp", false)) note_predictions(config, "num_mtp_modules", model);
  return model;
}

ModelSpec read_ernie4_5_moe(ObjectReader& config) {
  ModelSpec model = read_gated(config, {.max_seq_len = 131'072,
                                        .kv_heads = 4,
                                        .tied = true,
                                        .norm_epsilon = 1e-5,
                                        .rope_theta = 500'000.0});
  const bool bias = config.boolean_or("use_bias", false);
  model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias = bias;
  model.head_bias = bias;
  MoeSpec moe;
  moe.experts = config.integer_or("moe_num_experts", 64, kExpertRange);
  moe.top_k = config.integer_or("moe_k", 6, kExpertRange);
  moe.expert_ffn = config.integer_or("moe_intermediate_size", 1536, kWidthRange);
  const std::int64_t shared = config.integer_or("moe_num_shared_experts", 2, kExpertOrZeroRange);
  add_shared_experts(moe, shared, shared * moe.expert_ffn);
  moe.first_dense_layers = config.integer_or("moe_layer_start_index", 1, kLayerCountOrZeroRange);
  moe.router_bias = true;
  model.moe = moe;
  if (config.integer_or("moe_layer_interval", 1, kLayerRange) != 1)
    config.problem_with("moe_layer_interval", "1: dense layers among the sparse ones");
  const std::int64_t last = config.integer_or("moe_layer_end_index", -1, {-1, kLayerRange.most});
  if (last != -1 && last != model.layers - 1)
    config.problem_with("moe_layer_end_index", "-1 or the last layer");
  note_predictions(config, "num_nextn_predict_layers", model);
  return model;
}

// Layers of one branch: Mamba-2, attention without positions, a feed-forward block with squared
// ReLU and no gate, or experts of that kind (arXiv 2504.03624).
ModelSpec read_nemotron_h(ObjectReader& config) {
  ModelSpec model = read_sizes(config);
  model.max_seq_len = config.integer_or(spelling(config, kSequenceKeys), 4096, kTokenRange);
  AttentionSpec& attention = model.attention;
  attention.kv_heads = config.integer_or(kKvHeadsKeys.front(), 8, kHeadRange);
  attention.head_dim =
      config.integer_or(spelling(config, {"head_dim", "attention_head_dim"}), 128, kHeadDimRange);
  attention.qkv_bias = attention.output_bias = config.boolean_or("attention_bias", false);
  model.mlp = {config.integer_or("intermediate_size", 21'504, kWidthRange), Activation::Relu, false,
               config.boolean_or("mlp_bias", false)};
  model.norm_epsilon = read_norm_epsilon(config, 1e-5);
  model.position = PositionKind::None;
  model.tied_embeddings = config.boolean_or("tie_word_embeddings", false);
  LinearAttentionSpec linear;
  linear.heads = config.integer_or("mamba_num_heads", 128, kHeadRange);
  linear.head_dim = config.integer_or("mamba_head_dim", 64, kHeadDimRange);
  linear.key_heads = config.integer_or("n_groups", 8, kHeadRange);
  linear.state_dim = config.integer_or("ssm_state_size", 128, kHeadDimRange);
  linear.conv_width = config.integer_or("conv_kernel", 4, {1, 64});
  linear.conv_bias = config.boolean_or("use_conv_bias", true);
  linear.chunk = config.integer_or("chunk_size", 128, {1, 65'536});
  if (config.boolean_or("mamba_proj_bias", false))
    config.problem_with("mamba_proj_bias", "false: projections of Mamba-2 with biases");
  const std::map<std::string, char> letters = {{"mamba", 'M'},     {"linear_attention", 'M'},
                                               {"attention", '*'}, {"full_attention", '*'},
                                               {"mlp", '-'},       {"moe", 'E'}};
  model.layer_pattern = read_layer_pattern(config, "layers_block_type", letters,
                                           config.text_or("hybrid_override_pattern", "ME*-"));
  if (model.layer_pattern.find('M') != std::string::npos) model.linear_attention = linear;
  if (model.layer_pattern.find('E') != std::string::npos) {
    MoeSpec moe;
    moe.experts = config.integer_or("n_routed_experts", 8, kExpertRange);
    moe.top_k = config.integer_or("num_experts_per_tok", 2, kExpertRange);
    moe.expert_ffn = config.integer_or("moe_intermediate_size", 7688, kWidthRange);
    add_shared_experts(
        moe, config.integer_or("n_shared_experts", 1, kExpertOrZeroRange),
        config.integer_or("moe_shared_expert_intermediate_size", 7688, kWidthOrZeroRange));
    moe.router_bias = true;
    model.moe = moe;
    if (config.has("moe_latent_size"))
      config.problem_with("moe_latent_size", "null: experts behind a narrower projection");
  }
  note_predictions(config, "num_nextn_predict_layers", model);
  return model;
}

}  // namespace shardwright::huggingface
