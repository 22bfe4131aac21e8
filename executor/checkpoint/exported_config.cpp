#include "executor/checkpoint/exported_config.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/spec/huggingface.hpp"
#include "executor/checkpoint/weight_files.hpp"

namespace shardwright::executor {
namespace {

using nlohmann::ordered_json;

// The executor's GELU is the approximation by a hyperbolic tangent, which GPT-2 calls "gelu_new".
std::string activation_name(Activation activation, const char* gelu) {
  if (activation == Activation::Gelu) return gelu;
  return activation == Activation::Relu ? "relu" : "silu";
}

// Tokens that begin and end a text are the tokenizer's; a default may lie beyond the vocabulary.
ordered_json common_part(const ModelSpec& model, const char* type, const char* class_name,
                         const std::string& dtype) {
  return {{"architectures", {class_name}},
          {"model_type", type},
          {"torch_dtype", dtype},
          {"vocab_size", model.vocab},
          {"tie_word_embeddings", model.tied_embeddings},
          {"bos_token_id", nullptr},
          {"eos_token_id", nullptr}};
}

ordered_json scaling_config(const RopeScalingSpec& scaling) {
  if (scaling.kind == RopeScalingKind::Linear)
    return {{"rope_type", "linear"}, {"factor", scaling.factor}};
  if (scaling.kind == RopeScalingKind::Yarn) {
    return {{"rope_type", "yarn"},
            {"factor", scaling.factor},
            {"original_max_position_embeddings", scaling.original_max_seq_len},
            {"beta_fast", scaling.beta_fast},
            {"beta_slow", scaling.beta_slow},
            {"mscale", scaling.mscale},
            {"mscale_all_dim", scaling.mscale_all_dim}};
  }
  return {{"rope_type", "llama3"},
          {"factor", scaling.factor},
          {"low_freq_factor", scaling.low_freq_factor},
          {"high_freq_factor", scaling.high_freq_factor},
          {"original_max_position_embeddings", scaling.original_max_seq_len}};
}

// transformers, LlamaConfig, Qwen2Config and Qwen3Config. Biases and norms of heads follow from the
// type where it has no key for them.
ordered_json gated_config(const ModelSpec& model, const char* type, const char* class_name,
                          const std::string& dtype) {
  ordered_json config = common_part(model, type, class_name, dtype);
  config.update({{"hidden_size", model.hidden},
                 {"intermediate_size", model.mlp.ffn_hidden},
                 {"num_hidden_layers", model.layers},
                 {"num_attention_heads", model.attention.heads},
                 {"num_key_value_heads", model.attention.kv_heads},
                 {"head_dim", model.attention.head_dim},
                 {"max_position_embeddings", model.max_seq_len},
                 {"hidden_act", activation_name(model.mlp.activation, "gelu_pytorch_tanh")},
                 {"rms_norm_eps", model.norm_epsilon},
                 {"rope_theta", model.rope_theta},
                 {"attention_bias", model.attention.output_bias},
                 {"mlp_bias", model.mlp.bias}});
  if (model.rope_scaling) config["rope_scaling"] = scaling_config(*model.rope_scaling);
  return config;
}

// transformers, DeepseekV2Config. All layers are dense where there are no experts.
ordered_json deepseek_config(const ModelSpec& model, const std::string& dtype) {
  const AttentionSpec& attention = model.attention;
  ordered_json config = gated_config(model, "deepseek_v2", "DeepseekV2ForCausalLM", dtype);
  config.erase("head_dim");
  config.update({{"q_lora_rank", nullptr},
                 {"kv_lora_rank", attention.kv_lora_rank},
                 {"qk_nope_head_dim", attention.qk_nope_head_dim},
                 {"qk_rope_head_dim", attention.qk_rope_head_dim},
                 {"v_head_dim", attention.v_head_dim},
                 {"first_k_dense_replace", model.layers}});
  if (attention.q_lora_rank > 0) config["q_lora_rank"] = attention.q_lora_rank;
  if (!model.moe) return config;
  const MoeSpec& moe = *model.moe;
  config.update({{"first_k_dense_replace", moe.first_dense_layers},
                 {"n_routed_experts", moe.experts},
                 {"num_experts_per_tok", moe.top_k},
                 {"moe_intermediate_size", moe.expert_ffn},
                 {"n_shared_experts", moe.shared_experts},
                 {"norm_topk_prob", moe.renormalised},
                 {"scoring_func", "softmax"},
                 {"topk_method", "greedy"},
                 {"routed_scaling_factor", 1.0}});
  return config;
}

// transformers renormalises no shares of experts, and has shared ones beside them.
bool computes_as_deepseek(const ModelSpec& model) {
  return model.attention.kind == AttentionKind::MultiHeadLatent &&
         (!model.moe || (!model.moe->renormalised && model.moe->shared_experts > 0));
}

// transformers, GPT2Config.
ordered_json gpt2_config(const ModelSpec& model, const std::string& dtype) {
  ordered_json config = common_part(model, "gpt2", "GPT2LMHeadModel", dtype);
  config.update({{"n_embd", model.hidden},
                 {"n_inner", model.mlp.ffn_hidden},
                 {"n_layer", model.layers},
                 {"n_head", model.attention.heads},
                 {"n_positions", model.position_embeddings},
                 {"activation_function", activation_name(model.mlp.activation, "gelu_new")},
                 {"layer_norm_epsilon", model.norm_epsilon},
                 {"resid_pdrop", model.dropout},
                 {"embd_pdrop", model.dropout},
                 {"attn_pdrop", model.dropout}});
  return config;
}

// True if the reader of configurations understands by it what the executor computes.
bool describes(const ordered_json& config, const ModelSpec& model) {
  try {
    return architecture_checksum(import_huggingface(config, "config.json")) ==
           architecture_checksum(model);
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace

std::optional<ordered_json> exported_config(const ModelSpec& model, const std::string& dtype) {
  if (computes_as_deepseek(model)) {
    ordered_json config = deepseek_config(model, dtype);
    if (describes(config, model)) return config;
  }
  const std::array configs = {gated_config(model, "llama", "LlamaForCausalLM", dtype),
                              gated_config(model, "qwen2", "Qwen2ForCausalLM", dtype),
                              gated_config(model, "qwen3", "Qwen3ForCausalLM", dtype),
                              gpt2_config(model, dtype)};
  for (const ordered_json& config : configs)
    if (describes(config, model)) return config;
  return std::nullopt;
}

}  // namespace shardwright::executor
