// Readers of the model types in Llama's line: RMSNorm, rotary positions, a gated feed-forward
// block.
//
// The defaults are those of the configuration classes in
// https://github.com/huggingface/transformers/tree/main/src/transformers/models.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/spec/huggingface_config.hpp"
#include "core/spec/model_limits.hpp"

namespace shardwright::huggingface {
namespace {

// Newer files list the kind of every layer. True if there was such a list.
bool read_layer_types(ObjectReader& config, ModelSpec& model, std::int64_t window) {
  if (!config.has("layer_types")) return false;
  const std::vector<std::string> types = config.texts("layer_types");
  const auto refuse = [&config](std::string found, std::string expected) {
    config.problem("layer_types", std::move(found), std::move(expected));
    return true;
  };
  if (static_cast<std::int64_t>(types.size()) != model.layers) {
    return refuse(fmt::format("{} layers", types.size()), fmt::format("{}", model.layers));
  }
  const std::string full = "full_attention";
  const std::string sliding = "sliding_attention";
  for (const std::string& type : types) {
    if (type != full && type != sliding)
      return refuse(fmt::format("\"{}\"", type), fmt::format("{} or {}", full, sliding));
  }
  const auto first = std::ranges::find(types, sliding);
  if (first == types.end()) return true;
  AttentionSpec& attention = model.attention;
  attention.sliding_window = window;
  attention.full_attention_first_layers = first - types.begin();
  const auto next_full = std::find(first, types.end(), full);
  attention.full_attention_interval = next_full == types.end() ? 0 : next_full - types.begin() + 1;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const bool slides = types[static_cast<std::size_t>(layer)] == sliding;
    if (slides != (model.sliding_window_of(layer) > 0))
      return refuse("an irregular order", "full attention in leading layers or each k-th layer");
  }
  return true;
}

// Qwen: the window counts only where it is switched on, and not in the first max_window_layers.
void read_switched_window(ObjectReader& config, ModelSpec& model) {
  if (!config.boolean_or("use_sliding_window", false)) return;
  const std::int64_t window = config.integer_or("sliding_window", 4096, kTokenRange);
  if (read_layer_types(config, model, window)) return;
  const std::int64_t full =
      std::min(model.layers, config.integer_or("max_window_layers", 28, kLayerCountOrZeroRange));
  model.attention.sliding_window = window;
  model.attention.full_attention_first_layers = full;
}

// Qwen's experts: sparse is each k-th layer, except those that mlp_only_layers lists.
MoeSpec read_qwen_experts(ObjectReader& config, bool renormalised) {
  MoeSpec moe;
  moe.experts =
      config.integer(spelling(config, {"num_experts", "num_local_experts"}), kExpertRange);
  moe.top_k = config.integer("num_experts_per_tok", kExpertRange);
  moe.expert_ffn = config.integer("moe_intermediate_size", kWidthRange);
  moe.renormalised = config.boolean_or("norm_topk_prob", renormalised);
  moe.layer_interval = config.integer_or("decoder_sparse_step", 1, kLayerRange);
  if (!config.has("mlp_only_layers")) return moe;
  const auto dense = config.integers("mlp_only_layers", kLayerCountOrZeroRange);
  for (std::size_t i = 0; i < dense.size(); ++i) {
    if (dense[i] == static_cast<std::int64_t>(i)) continue;
    config.problem("mlp_only_layers", fmt::format("layer {}", dense[i]),
                   "the leading layers 0, 1, …: other places are not supported");
    break;
  }
  moe.first_dense_layers = static_cast<std::int64_t>(dense.size());
  if (moe.first_dense_layers > 0 && moe.layer_interval > 1) {
    config.problem("mlp_only_layers", fmt::format("{} layers", moe.first_dense_layers),
                   "no layers, since decoder_sparse_step is above 1");
  }
  return moe;
}

}  // namespace

void read_alternating_window(ObjectReader& config, ModelSpec& model, std::int64_t interval,
                             std::int64_t window) {
  window = config.integer_or("sliding_window", window, kTokenRange);
  if (read_layer_types(config, model, window)) return;
  model.attention.sliding_window = window;
  model.attention.full_attention_interval =
      config.integer_or("sliding_window_pattern", interval, kLayerRange);
}

ModelSpec read_llama(ObjectReader& config) {
  ModelSpec model = read_gated(config, {});
  read_attention_bias(config, model);
  model.mlp.bias = config.boolean_or("mlp_bias", false);
  return model;
}

ModelSpec read_mistral(ObjectReader& config) {
  ModelSpec model = read_gated(config, {.max_seq_len = 131'072, .kv_heads = 8});
  // Later versions of Mistral 7B switch the window off with null.
  const std::int64_t missing = mentions(config, "sliding_window") ? 0 : 4096;
  model.attention.sliding_window = config.integer_or("sliding_window", missing, kTokenRange);
  return model;
}

ModelSpec read_mixtral(ObjectReader& config) {
  ModelSpec model = read_gated(
      config,
      {.max_seq_len = 131'072, .kv_heads = 8, .norm_epsilon = 1e-5, .rope_theta = 1'000'000.0});
  model.attention.sliding_window = config.integer_or("sliding_window", 0, kTokenRange);
  MoeSpec moe;
  moe.experts = config.integer_or("num_local_experts", 8, kExpertRange);
  moe.top_k = config.integer_or("num_experts_per_tok", 2, kExpertRange);
  moe.expert_ffn = model.mlp.ffn_hidden;
  model.moe = moe;
  return model;
}

ModelSpec read_qwen2(ObjectReader& config) {
  ModelSpec model = read_gated(config, {.max_seq_len = 32'768, .kv_heads = 32});
  model.attention.qkv_bias = true;
  read_switched_window(config, model);
  return model;
}

ModelSpec read_qwen2_moe(ObjectReader& config) {
  ModelSpec model = read_gated(config, {.max_seq_len = 32'768, .kv_heads = 16});
  model.attention.qkv_bias = config.boolean_or("qkv_bias", true);
  read_switched_window(config, model);
  MoeSpec moe = read_qwen_experts(config, false);
  moe.shared_expert_ffn =
      config.integer_or("shared_expert_intermediate_size", 5632, kWidthOrZeroRange);
  moe.shared_experts = moe.shared_expert_ffn > 0 ? 1 : 0;
  moe.shared_expert_gate = moe.shared_experts > 0;
  model.moe = moe;
  return model;
}

ModelSpec read_qwen3(ObjectReader& config) {
  ModelSpec model = read_gated(config, {.max_seq_len = 32'768, .kv_heads = 32, .head_dim = 128});
  model.attention.qk_norm = true;
  read_attention_bias(config, model);
  read_switched_window(config, model);
  return model;
}

ModelSpec read_qwen3_moe(ObjectReader& config) {
  ModelSpec model = read_gated(config, {.max_seq_len = 32'768, .kv_heads = 4});
  model.attention.qk_norm = true;
  read_attention_bias(config, model);
  if (config.boolean_or("use_sliding_window", false))
    model.attention.sliding_window = config.integer_or("sliding_window", 4096, kTokenRange);
  model.moe = read_qwen_experts(config, false);
  return model;
}

// Three layers of gated delta rule, then one of gated attention, all with experts
// (https://huggingface.co/Qwen/Qwen3-Next-80B-A3B-Instruct).
ModelSpec read_qwen3_next(ObjectReader& config) {
  ModelSpec model = read_gated(config, {.max_seq_len = 32'768, .kv_heads = 2, .head_dim = 256});
  model.attention.qk_norm = model.attention.output_gate = true;
  read_attention_bias(config, model);
  model.rotary_share = read_rotary_share(config, "partial_rotary_factor", 0.25);
  LinearAttentionSpec linear;
  linear.kind = LinearAttentionKind::GatedDeltaNet;
  linear.heads = config.integer_or("linear_num_value_heads", 32, kHeadRange);
  linear.head_dim = config.integer_or("linear_value_head_dim", 128, kHeadDimRange);
  linear.key_heads = config.integer_or("linear_num_key_heads", 16, kHeadRange);
  linear.state_dim = config.integer_or("linear_key_head_dim", 128, kHeadDimRange);
  linear.conv_width = config.integer_or("linear_conv_kernel_dim", 4, {1, 64});
  linear.chunk = 64;
  model.linear_attention = linear;
  const std::int64_t interval = config.integer_or("full_attention_interval", 4, {2, 64});
  const std::map<std::string, char> letters = {{"full_attention", 'A'}, {"linear_attention", 'L'}};
  model.layer_pattern =
      read_layer_pattern(config, "layer_types", letters,
                         std::string(static_cast<std::size_t>(interval - 1), 'L') + 'A');
  model.moe = read_qwen_experts(config, true);
  model.moe->shared_expert_ffn =
      config.integer_or("shared_expert_intermediate_size", 512, kWidthOrZeroRange);
  model.moe->shared_experts = model.moe->shared_expert_ffn > 0 ? 1 : 0;
  model.moe->shared_expert_gate = model.moe->shared_experts > 0;
  return model;
}

ModelSpec read_gemma(ObjectReader& config) {
  ModelSpec model = read_gated(config, {.max_seq_len = 8192,
                                        .kv_heads = 16,
                                        .head_dim = 256,
                                        .tied = true,
                                        .activation = "gelu_pytorch_tanh"});
  read_attention_bias(config, model);
  return model;
}

ModelSpec read_gemma2(ObjectReader& config) {
  ModelSpec model = read_gated(config, {.max_seq_len = 8192,
                                        .kv_heads = 4,
                                        .head_dim = 256,
                                        .tied = true,
                                        .activation = "gelu_pytorch_tanh"});
  read_attention_bias(config, model);
  model.norms_per_layer = 4;
  read_alternating_window(config, model, 2);
  return model;
}

ModelSpec read_gemma3_text(ObjectReader& config) {
  // The files of the 4B model leave out whatever is at its default, the heads and the vocabulary
  // among them.
  ModelSpec sizes;
  sizes.layers = config.integer("num_hidden_layers", kLayerRange);
  sizes.hidden = config.integer("hidden_size", kWidthRange);
  sizes.vocab = config.integer_or("vocab_size", 262'208, kVocabRange);
  sizes.attention.heads = config.integer_or("num_attention_heads", 8, kHeadRange);
  ModelSpec model = complete_gated(config, std::move(sizes),
                                   {.max_seq_len = 131'072,
                                    .kv_heads = 4,
                                    .head_dim = 256,
                                    .tied = true,
                                    .activation = "gelu_pytorch_tanh",
                                    .rope_theta = 1'000'000.0});
  read_attention_bias(config, model);
  model.attention.qk_norm = true;
  model.norms_per_layer = 4;
  read_alternating_window(config, model, 6);
  return model;
}

ModelSpec read_phi3(ObjectReader& config) {
  ModelSpec model = read_gated(config, {.max_seq_len = 4096, .norm_epsilon = 1e-5});
  model.attention.sliding_window = config.integer_or("sliding_window", 0, kTokenRange);
  model.rotary_share = read_rotary_share(config, "partial_rotary_factor", 1.0);
  model.dropout = config.number_or("resid_pdrop", 0.0, kRatioOrZero);
  return model;
}

// Norms behind the two branches of a layer, and over all heads of queries and keys (arXiv
// 2501.00656, section 3.2).
ModelSpec read_olmo2(ObjectReader& config) {
  ModelSpec model = read_gated(config, {.norm_epsilon = 1e-5});
  read_attention_bias(config, model);
  model.attention.qk_norm = model.attention.qk_norm_whole = true;
  model.post_norm = true;
  return model;
}

ModelSpec read_olmo3(ObjectReader& config) {
  ModelSpec model = read_olmo2(config);
  read_rotary_angles(config, model, 500'000.0);
  read_alternating_window(config, model, 4);
  return model;
}

// Llama with constant factors on embedding, attention, residuals and logits.
ModelSpec read_granite(ObjectReader& config) {
  return read_llama(config);
}

// Command R: attention and feed-forward block in parallel, behind one LayerNorm without bias.
ModelSpec read_cohere(ObjectReader& config) {
  ModelSpec model = read_gated(
      config, {.max_seq_len = 8192, .tied = true, .norm_epsilon = 1e-5, .rope_theta = 500'000.0});
  read_attention_bias(config, model);
  model.norm = NormKind::LayerNorm;
  model.parallel_block = true;
  model.norms_per_layer = 1;
  model.attention.qk_norm = model.attention.qk_norm_whole = config.boolean_or("use_qk_norm", false);
  return model;
}

ModelSpec read_cohere2(ObjectReader& config) {
  ModelSpec model = read_cohere(config);
  read_rotary_angles(config, model, 10'000.0);
  read_alternating_window(config, model, 4);
  return model;
}

ModelSpec read_seed_oss(ObjectReader& config) {
  ModelSpec model = read_gated(config, {.max_seq_len = 524'288, .kv_heads = 8, .head_dim = 128});
  model.attention.qkv_bias = config.boolean_or("attention_bias", true);
  model.attention.output_bias = config.boolean_or("attention_out_bias", false);
  model.mlp.bias = config.boolean_or("mlp_bias", false);
  model.dropout = config.number_or("residual_dropout", 0.1, kRatioOrZero);
  return model;
}

}  // namespace shardwright::huggingface
