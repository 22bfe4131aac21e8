#include "planner/import/megatron_shape.hpp"

#include <algorithm>

#include "planner/import/megatron_layers.hpp"

namespace shardwright::planner {
namespace {

void read_mlp(MegatronSettings& settings, ModelSpec& model) {
  MlpSpec& mlp = model.mlp;
  const bool swiglu = settings.is_on("swiglu");
  mlp.gated = settings.is_on("quick_geglu") || swiglu;
  mlp.activation = swiglu ? Activation::Silu : Activation::Gelu;
  if (settings.is_on("squared_relu")) mlp.activation = Activation::Relu;
  // Two thirds of four times the width, in multiples of 64, with SwiGLU.
  constexpr std::int64_t kUnit = 64;
  const std::int64_t usual = swiglu ? model.hidden * 4 * 2 / 3 / kUnit * kUnit : 4 * model.hidden;
  mlp.ffn_hidden = settings.count("ffn_hidden_size", usual);
}

void read_latent(MegatronSettings& settings, AttentionSpec& attention) {
  attention.kind = AttentionKind::MultiHeadLatent;
  attention.q_lora_rank = settings.count("q_lora_rank", 0);
  attention.kv_lora_rank = settings.count("kv_lora_rank", 32);
  attention.qk_nope_head_dim = settings.count("qk_head_dim", 128);
  attention.qk_rope_head_dim = settings.count("qk_pos_emb_head_dim", 64);
  attention.v_head_dim = settings.count("v_head_dim", 128);
  attention.head_dim = attention.qk_nope_head_dim + attention.qk_rope_head_dim;
  attention.kv_heads = attention.heads;
}

// Layers in which attention sees all tokens: each nth one, or as a list says.
void read_full_attention(MegatronSettings& settings, ModelSpec& model) {
  const std::string text = settings.text("window_attn_skip_freq");
  if (text.empty()) return;
  AttentionSpec& attention = model.attention;
  if (text.find_first_not_of("0123456789") == std::string::npos) {
    attention.full_attention_interval = settings.count("window_attn_skip_freq", 0);
    return;
  }
  const auto slides = layer_flags(text, model.layers);
  const auto agrees = [&] {
    for (std::int64_t layer = 0; layer < model.layers; ++layer)
      if ((model.sliding_window_of(layer) > 0) != (*slides)[static_cast<std::size_t>(layer)])
        return false;
    return true;
  };
  if (slides) {
    const std::int64_t first = std::find(slides->begin(), slides->end(), true) - slides->begin();
    for (const std::int64_t full_first : {std::int64_t{0}, first}) {
      attention.full_attention_first_layers = full_first;
      attention.full_attention_interval = 0;
      for (std::int64_t interval = 2; !agrees() && interval <= model.layers; ++interval)
        attention.full_attention_interval = interval;
      if (agrees()) return;
    }
  }
  settings.refuse("window_attn_skip_freq", "each nth layer, or a number for each layer");
}

void read_attention(MegatronSettings& settings, ModelSpec& model) {
  AttentionSpec& attention = model.attention;
  attention.heads = std::max<std::int64_t>(1, settings.required("num_attention_heads"));
  attention.head_dim = settings.count("kv_channels", model.hidden / attention.heads);
  const std::int64_t groups = settings.count("num_query_groups", 1);
  attention.kv_heads = settings.is_on("group_query_attention") ? groups : attention.heads;
  // Megatron-DeepSpeed's.
  attention.kv_heads = settings.count("num_key_value_heads", attention.kv_heads);
  const bool is_latent = settings.is_on("multi_latent_attention");
  if (is_latent) read_latent(settings, attention);
  // Those of latent attention are in its bottlenecks, which always have them.
  attention.qk_norm = settings.is_on("qk_layernorm") && !is_latent;
  const std::string softmax = settings.text("softmax_type");
  attention.sinks = softmax == "learnable";
  if (!softmax.empty() && !attention.sinks && softmax != "vanilla" && softmax != "off-by-one")
    settings.refuse("softmax_type", "vanilla, off-by-one or learnable");
  // "127,0" or "(127,0)": the tokens before a query, and behind it.
  std::string window = settings.text("window_size");
  if (window.starts_with('(')) window.erase(0, 1);
  if (!window.empty()) {
    const std::size_t digits = window.find_first_not_of("0123456789");
    attention.sliding_window =
        digits == 0 || digits > 15 ? 0 : std::stoll(window.substr(0, digits)) + 1;
    if (attention.sliding_window == 0) settings.refuse("window_size", "\"127,0\", for example");
    read_full_attention(settings, model);
  }
}

void read_biases(MegatronSettings& settings, ModelSpec& model) {
  const bool all = settings.is_on("add_bias_linear", true);
  model.attention.qkv_bias = settings.is_on("add_qkv_bias") || all;
  model.attention.output_bias = model.mlp.bias = all;
}

void read_rope_scaling(MegatronSettings& settings, ModelSpec& model) {
  const double interpolation = settings.real("rotary_seq_len_interpolation_factor", 0.0);
  const double yarn = settings.real("rotary_scaling_factor", 1.0);
  RopeScalingSpec scaling;
  if (settings.is_on("use_rope_scaling")) {
    scaling.kind = RopeScalingKind::Llama3;
    scaling.factor = settings.real("rope_scaling_factor", 8.0);
  } else if (interpolation > 1.0) {
    scaling.kind = RopeScalingKind::Linear;
    scaling.factor = interpolation;
  } else if (yarn > 1.0 && model.attention.kind == AttentionKind::MultiHeadLatent) {
    constexpr std::int64_t kOriginal = 4096;
    scaling.kind = RopeScalingKind::Yarn;
    scaling.factor = yarn;
    scaling.original_max_seq_len = kOriginal;
    scaling.mscale = settings.real("mscale", 1.0);
    scaling.mscale_all_dim = settings.real("mscale_all_dim", 0.0);
  } else {
    return;
  }
  model.rope_scaling = scaling;
}

void read_positions(MegatronSettings& settings, ModelSpec& model) {
  model.max_seq_len = settings.count("max_position_embeddings", settings.count("seq_length", 2048));
  std::string kind = settings.text("position_embedding_type");
  if (settings.is_on("use_rotary_position_embeddings")) kind = "rope";
  if (kind.empty() || kind == "learned_absolute") {
    model.position = PositionKind::Learned;
    model.position_embeddings = model.max_seq_len;
  } else if (kind == "rope" || kind == "yarn") {
    model.position = PositionKind::Rotary;
    model.rotary_share = settings.real("rotary_percent", 1.0);
    model.rope_theta = settings.real("rotary_base", 10'000.0);
    read_rope_scaling(settings, model);
  } else if (kind == "alibi") {
    model.position = PositionKind::Alibi;
  } else {
    model.position = PositionKind::None;
    if (kind != "none")
      settings.refuse("position_embedding_type", "learned_absolute, rope, yarn, alibi or none");
  }
}

void read_norms(MegatronSettings& settings, ModelSpec& model) {
  // Megatron-DeepSpeed writes both in lower case.
  const std::string kind = settings.text("normalization");
  const bool is_rms = kind == "RMSNorm" || kind == "rmsnorm";
  model.norm = is_rms ? NormKind::RmsNorm : NormKind::LayerNorm;
  if (!kind.empty() && !is_rms && kind != "LayerNorm" && kind != "layernorm")
    settings.refuse("normalization", "LayerNorm or RMSNorm");
  model.norm_bias = model.norm == NormKind::LayerNorm;
  model.norm_epsilon = settings.real("norm_epsilon", 1e-5);
}

// Leading dense layers and an interval that give the layers with experts.
void read_sparse_layers(MegatronSettings& settings, ModelSpec& model) {
  const std::string text = settings.text("moe_layer_freq");
  if (text.empty()) return;
  MoeSpec& moe = *model.moe;
  std::vector<bool> sparse(static_cast<std::size_t>(model.layers));
  if (text.find_first_not_of("0123456789") == std::string::npos) {
    const std::int64_t each = std::max<std::int64_t>(1, settings.count("moe_layer_freq", 1));
    for (std::size_t i = 0; i < sparse.size(); ++i)
      sparse[i] = static_cast<std::int64_t>(i) % each == 0;
  } else if (const auto flags = layer_flags(text, model.layers)) {
    sparse = *flags;
  } else {
    return settings.refuse("moe_layer_freq", "a number, or a list with a number for each layer");
  }
  const auto agrees = [&] {
    for (std::int64_t layer = 0; layer < model.layers; ++layer)
      if (model.is_sparse(layer) != sparse[static_cast<std::size_t>(layer)]) return false;
    return true;
  };
  const std::int64_t first = std::find(sparse.begin(), sparse.end(), true) - sparse.begin();
  for (std::int64_t interval = 1; interval <= first + 1; ++interval) {
    moe.layer_interval = interval;
    moe.first_dense_layers = first + 1 - interval;
    if (agrees()) return;
  }
  moe.layer_interval = 1;
  settings.refuse("moe_layer_freq", "dense layers first, then each nth layer with experts");
}

// Megatron-DeepSpeed's arguments: one expert means none, each second layer has experts, and tokens
// beyond an expert's even part are dropped (megatron/arguments.py and model/transformer.py at
// commit 207b2d5aad1e of https://github.com/deepspeedai/Megatron-DeepSpeed).
void read_deepspeed_experts(MegatronSettings& settings, ModelSpec& model, std::int64_t experts) {
  if (experts <= 1) return;
  MoeSpec& moe = model.moe.emplace();
  moe.experts = experts;
  moe.top_k = settings.count("topk", 1);
  moe.layer_interval = std::max<std::int64_t>(1, settings.count("expert_interval", 2));
  moe.expert_ffn = model.mlp.ffn_hidden;
  const double capacity = settings.real("moe_train_capacity_factor", 1.0);
  moe.capacity_factor = settings.is_on("moe_token_dropping", true) ? capacity : 0.0;
  const std::string kind = settings.text("mlp_type");
  if (!kind.empty() && kind != "standard")
    settings.refuse_value("mlp_type", "standard: no dense block beside the experts");
}

void read_experts(MegatronSettings& settings, ModelSpec& model) {
  const std::int64_t experts = settings.count("num_experts", 0);
  if (settings.is_on("deepspeed")) return read_deepspeed_experts(settings, model, experts);
  if (experts == 0) return;
  MoeSpec& moe = model.moe.emplace();
  moe.experts = experts;
  moe.top_k = settings.count("moe_router_topk", 2);
  moe.expert_ffn = settings.count("moe_ffn_hidden_size", model.mlp.ffn_hidden);
  moe.shared_expert_ffn = settings.count("moe_shared_expert_intermediate_size", 0);
  if (moe.shared_expert_ffn > 0)
    moe.shared_experts = std::max<std::int64_t>(
        1, moe.shared_expert_ffn / std::max<std::int64_t>(1, moe.expert_ffn));
  moe.shared_expert_gate = settings.is_on("moe_shared_expert_gate");
  moe.router_bias = settings.is_on("moe_router_enable_expert_bias");
  moe.balanced_routing = settings.is_on("moe_router_force_load_balancing");
  moe.capacity_factor = settings.real("moe_expert_capacity_factor", 0.0);
  moe.pads_to_capacity = settings.is_on("moe_pad_expert_input_to_capacity");
  read_sparse_layers(settings, model);
}

}  // namespace

ModelSpec model_of(MegatronSettings& settings) {
  constexpr std::int64_t kMostLayers = 10'000;
  ModelSpec model;
  model.layers = number_of_layers(settings);
  model.hidden = settings.required("hidden_size");
  if (model.layers < 1 || model.layers > kMostLayers) {
    settings.refuse("num_layers", "1 to 10,000");
    model.layers = 1;
  }
  model.vocab = settings.count("vocab_size", settings.count("padded_vocab_size", 0));
  model.embedding_norm = settings.is_on("embed_layernorm");
  model.tied_embeddings = !settings.is_on("untie_embeddings_and_output_weights");
  model.dropout = settings.real("hidden_dropout", 0.1);
  model.mtp_layers = settings.count("mtp_num_layers", 0);
  read_mlp(settings, model);
  read_attention(settings, model);
  read_biases(settings, model);
  read_positions(settings, model);
  read_norms(settings, model);
  read_experts(settings, model);
  read_layer_kinds(settings, model);
  return model;
}

}  // namespace shardwright::planner
