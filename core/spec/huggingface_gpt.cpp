// Readers of the model types in GPT's line: LayerNorm, a plain feed-forward block.
//
// The defaults are those of the configuration classes in
// https://github.com/huggingface/transformers/tree/main/src/transformers/models.
#include <fmt/format.h>

#include "core/spec/huggingface_config.hpp"
#include "core/spec/model_limits.hpp"

namespace shardwright::huggingface {
namespace {

// LayerNorm with bias, biases everywhere, no gate, a tied head: what GPT-2 has and its successors
// vary.
ModelSpec read_gpt(ObjectReader& config, const std::string& activation,
                   const SizeKeys& usual = {}) {
  ModelSpec model = read_sizes(config, usual);
  model.attention.head_dim = even_head_dim(config, model);
  model.attention.qkv_bias = true;
  model.attention.output_bias = true;
  model.mlp = {read_ffn_or_four_hidden(config, model), read_activation(config, activation), false,
               true};
  model.norm = NormKind::LayerNorm;
  model.norm_bias = true;
  model.norm_epsilon = read_norm_epsilon(config, 1e-5);
  read_rotary_angles(config, model, 10'000.0);
  model.tied_embeddings = config.boolean_or("tie_word_embeddings", true);
  return model;
}

// A switch whose other setting adds or removes parameters that are not modelled.
void expect_setting(ObjectReader& config, const std::string& key, bool modelled, const char* why) {
  if (config.boolean_or(key, modelled) == modelled) return;
  config.problem(key, fmt::format("{}", !modelled), fmt::format("{}: {}", modelled, why));
}

void set_biases(ModelSpec& model, bool bias) {
  model.attention.qkv_bias = bias;
  model.attention.output_bias = bias;
  model.mlp.bias = bias;
}

}  // namespace

ModelSpec read_gpt2(ObjectReader& config) {
  ModelSpec model = read_gpt(config, "gelu_new", {"n_layer", "n_embd", "n_head"});
  model.max_seq_len = config.integer_or(spelling(config, kSequenceKeys), 1024, kTokenRange);
  model.dropout = config.number_or("resid_pdrop", 0.1, kRatioOrZero);
  expect_setting(config, "add_cross_attention", false, "an encoder beside it is not supported");
  learn_positions(model, 0);
  return model;
}

ModelSpec read_gpt_neox(ObjectReader& config) {
  ModelSpec model = read_gpt(config, "gelu");
  const bool bias = config.boolean_or("attention_bias", true);
  model.attention.qkv_bias = bias;
  model.attention.output_bias = bias;
  model.max_seq_len = config.integer_or(spelling(config, kSequenceKeys), 2048, kTokenRange);
  model.rotary_share = read_rotary_share(config, "rotary_pct", 0.25);
  model.parallel_block = config.boolean_or("use_parallel_residual", true);
  model.tied_embeddings = config.boolean_or("tie_word_embeddings", false);
  model.dropout = config.number_or("hidden_dropout", 0.0, kRatioOrZero);
  return model;
}

ModelSpec read_opt(ObjectReader& config) {
  // The first two rows of OPT's position table stand for padding.
  constexpr std::int64_t kPositionOffset = 2;
  ModelSpec model = read_gpt(config, "relu");
  set_biases(model, config.boolean_or("enable_bias", true));
  model.max_seq_len = config.integer_or(spelling(config, kSequenceKeys), 2048, kTokenRange);
  learn_positions(model, kPositionOffset);
  expect_setting(config, "layer_norm_elementwise_affine", true,
                 "norms without weights are not supported");
  // With the norms after the blocks (OPT-350m) the last one already is the final norm.
  model.final_norm = config.boolean_or("do_layer_norm_before", true) &&
                     !config.boolean_or("_remove_final_layer_norm", false);
  const std::int64_t width = config.integer_or("word_embed_proj_dim", model.hidden, kWidthRange);
  model.embedding_width = width == model.hidden ? 0 : width;
  model.dropout = config.number_or("dropout", 0.1, kRatioOrZero);
  return model;
}

ModelSpec read_bloom(ObjectReader& config) {
  ModelSpec model = read_gpt(config, "gelu", {"n_layer", "hidden_size", "n_head"});
  model.max_seq_len = config.integer_or("seq_length", 2048, kTokenRange);
  model.position = PositionKind::Alibi;
  model.embedding_norm = true;
  model.dropout = config.number_or("hidden_dropout", 0.0, kRatioOrZero);
  return model;
}

ModelSpec read_mpt(ObjectReader& config) {
  ModelSpec model = read_gpt(config, "gelu", {"n_layers", "d_model", "n_heads"});
  const std::int64_t ratio = config.integer_or("expansion_ratio", 4, {1, 64});
  model.mlp.ffn_hidden = ratio * model.hidden;
  model.max_seq_len = config.integer_or("max_seq_len", 2048, kTokenRange);
  const bool bias = !config.boolean_or("no_bias", true);
  set_biases(model, bias);
  model.norm_bias = bias;
  model.dropout = config.number_or("resid_pdrop", 0.0, kRatioOrZero);
  bool alibi = true, rope = false;
  if (auto attention = config.object_if("attn_config")) {
    alibi = attention->boolean_or("alibi", true);
    rope = attention->boolean_or("rope", false);
    read_rotary_angles(*attention, model, 10'000.0);
    if (attention->text_or("attn_type", "") == "multiquery_attention") model.attention.kv_heads = 1;
    if (attention->has("kv_n_heads"))
      model.attention.kv_heads = attention->integer("kv_n_heads", kHeadRange);
    expect_setting(*attention, "qk_ln", false, "a norm over all heads together is not supported");
  }
  // Either of the two takes the place of learned positions.
  model.position = alibi ? PositionKind::Alibi : PositionKind::Rotary;
  if (!alibi && !rope) learn_positions(model, 0);
  return model;
}

ModelSpec read_falcon(ObjectReader& config) {
  ModelSpec model = read_gpt(config, "gelu");
  model.tied_head_stored = model.tied_embeddings;
  set_biases(model, config.boolean_or("bias", false));
  model.max_seq_len = config.integer_or(spelling(config, kSequenceKeys), 2048, kTokenRange);
  if (config.boolean_or("alibi", false)) model.position = PositionKind::Alibi;
  model.dropout = config.number_or("hidden_dropout", 0.0, kRatioOrZero);

  // The second Falcon architecture has grouped queries and, unless the file says otherwise, a norm
  // for each of the two parallel blocks; the first has one key-value head and one norm for both.
  const bool new_architecture = config.boolean_or("new_decoder_architecture", false);
  const bool multi_query = config.boolean_or("multi_query", true);
  const std::int64_t kv_heads =
      config.integer_or(spelling(config, kKvHeadsKeys), model.attention.heads, kHeadRange);
  model.attention.kv_heads = new_architecture || !multi_query ? kv_heads : 1;
  model.parallel_block = new_architecture || config.boolean_or("parallel_attn", true);
  const std::int64_t parallel_norms =
      config.integer_or("num_ln_in_parallel_attn", new_architecture ? 2 : 1, {1, 2});
  model.norms_per_layer = model.parallel_block ? parallel_norms : 2;
  return model;
}

ModelSpec read_starcoder2(ObjectReader& config) {
  ModelSpec model = read_gpt(config, "gelu_pytorch_tanh");
  set_biases(model, config.boolean_or("use_bias", true));
  model.max_seq_len = config.integer_or(spelling(config, kSequenceKeys), 4096, kTokenRange);
  model.attention.kv_heads = config.integer_or(kKvHeadsKeys.front(), 2, kHeadRange);
  model.attention.sliding_window = config.integer_or("sliding_window", 0, kTokenRange);
  model.dropout = config.number_or("residual_dropout", 0.0, kRatioOrZero);
  return model;
}

ModelSpec read_nemotron(ObjectReader& config) {
  ModelSpec model = read_gpt(config, "relu2");
  const bool bias = config.boolean_or("attention_bias", false);
  model.attention.qkv_bias = model.attention.output_bias = bias;
  model.mlp.bias = config.boolean_or("mlp_bias", false);
  model.max_seq_len = config.integer_or(spelling(config, kSequenceKeys), 4096, kTokenRange);
  model.attention.kv_heads =
      config.integer_or(kKvHeadsKeys.front(), model.attention.heads, kHeadRange);
  model.attention.head_dim = config.integer_or("head_dim", model.attention.head_dim, kHeadDimRange);
  model.rotary_share = read_rotary_share(config, "partial_rotary_factor", 0.5);
  model.tied_embeddings = config.boolean_or("tie_word_embeddings", false);
  return model;
}

}  // namespace shardwright::huggingface
