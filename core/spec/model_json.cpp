#include "core/spec/model_json.hpp"

#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/spec/field_json.hpp"
#include "core/spec/model_check.hpp"
#include "core/spec/model_limits.hpp"

namespace shardwright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

void describe_attention(AttentionSpec& attention, FieldVisitor& fields) {
  const auto latent = AttentionKind::MultiHeadLatent;
  fields.choice("kind", attention.kind, kOptional,
                "grouped-query covers multi-head and multi-query attention; multi-head-latent is "
                "DeepSeek's MLA (arXiv 2405.04434)");
  fields.integer("heads", attention.heads, kHeadRange, kRequired, "attention heads");
  fields.integer("kv_heads", attention.kv_heads, kHeadRange,
                 derived(kOptional, static_cast<double>(attention.heads), "`heads`"),
                 "heads of keys and values: a divisor of `heads`, equal to it for "
                 "multi-head-latent");
  fields.integer("head_dim", attention.head_dim, kHeadDimRange,
                 required_if(attention.kind != latent, "`kind` is grouped-query",
                             derived(kOptional, 0.0, "`qk_nope_head_dim + qk_rope_head_dim`")),
                 "width of queries and keys; for multi-head-latent the sum of "
                 "`qk_nope_head_dim` and `qk_rope_head_dim`");
  fields.only_where("kind", attention.kind, {latent}, [&] {
    fields.integer("q_lora_rank", attention.q_lora_rank, kWidthOrZeroRange, kOptional,
                   "width of the queries' bottleneck; 0: queries are projected directly");
    fields.integer("kv_lora_rank", attention.kv_lora_rank, kWidthRange, kRequired,
                   "width of the bottleneck of keys and values");
    fields.integer("qk_nope_head_dim", attention.qk_nope_head_dim, kHeadDimRange, kRequired,
                   "width of a head's queries and keys without positions");
    fields.integer("qk_rope_head_dim", attention.qk_rope_head_dim, kHeadDimRange, kRequired,
                   "width of a head's queries and keys with rotary positions");
    fields.integer("v_head_dim", attention.v_head_dim, kHeadDimRange, kRequired,
                   "width of a head's values");
  });
  fields.boolean("qkv_bias", attention.qkv_bias, kOptional,
                 "the projections of queries, keys and values have a bias");
  fields.boolean("output_bias", attention.output_bias, kOptional,
                 "the output projection has a bias");
  fields.boolean("qk_norm", attention.qk_norm, kOptional,
                 "RMSNorm over each head of queries and keys (Qwen3)");
  fields.boolean("qk_norm_whole", attention.qk_norm_whole, kOmissible,
                 "with `qk_norm`: the norms span all heads at once (OLMo 2, MiniMax-M2), or have "
                 "weights of their own for each head (Command R+)");
  fields.boolean("sinks", attention.sinks, kOptional,
                 "each head has a learned logit that stands for no token (gpt-oss)");
  fields.boolean("output_gate", attention.output_gate, kOmissible,
                 "a sigmoid of a second query projection gates the output (Qwen3-Next)");
  fields.integer("sliding_window", attention.sliding_window, kTokenOrZeroRange, kOptional,
                 "tokens that a query sees at most; 0: all before it");
  fields.integer("full_attention_interval", attention.full_attention_interval,
                 kLayerCountOrZeroRange, kOptional,
                 "with a window, each k-th layer sees everything; 0: none");
  fields.integer("full_attention_first_layers", attention.full_attention_first_layers,
                 kLayerCountOrZeroRange, kOptional,
                 "with a window, leading layers that see everything (Qwen2)");
}

void describe_mlp(MlpSpec& mlp, FieldVisitor& fields) {
  fields.integer("ffn_hidden", mlp.ffn_hidden, kWidthRange, kRequired,
                 "width of the feed-forward block");
  fields.choice("activation", mlp.activation, kOptional, "activation function");
  fields.boolean("gated", mlp.gated, kOptional, "`act(x W_gate) * (x W_up)`, as SwiGLU and GeGLU");
  fields.boolean("bias", mlp.bias, kOptional, "the linear layers have biases");
  fields.boolean("clamped", mlp.clamped, kOmissible,
                 "the input of the activation is limited to a range (gpt-oss)");
}

void describe_moe(MoeSpec& moe, FieldVisitor& fields) {
  fields.integer("experts", moe.experts, kExpertRange, kRequired, "experts of a sparse layer");
  fields.integer("top_k", moe.top_k, kExpertRange, kRequired, "experts that each token is sent to");
  fields.integer("expert_ffn", moe.expert_ffn, kWidthRange, kRequired, "width of one expert");
  fields.integer("shared_experts", moe.shared_experts, kExpertOrZeroRange, kOptional,
                 "experts that every token passes");
  fields.integer("shared_expert_ffn", moe.shared_expert_ffn, kWidthOrZeroRange, kOptional,
                 "width of all shared experts together; 0 if there are none");
  fields.boolean("shared_expert_gate", moe.shared_expert_gate, kOptional,
                 "a learned sigmoid gates the shared experts (Qwen2-MoE)");
  fields.integer("first_dense_layers", moe.first_dense_layers, kLayerCountOrZeroRange, kOptional,
                 "leading layers with a dense feed-forward block (DeepSeek)");
  fields.integer("layer_interval", moe.layer_interval, kLayerRange, kOptional,
                 "after these, each k-th layer is sparse");
  fields.integer("token_nodes", moe.token_nodes, kExpertOrZeroRange, kOptional,
                 "most nodes that a token is sent to, where experts are chosen by groups "
                 "(DeepSeek-V2 and -V3); 0: any number");
  fields.boolean("router_bias", moe.router_bias, kOptional,
                 "each expert has a score correction, which gradients do not train (DeepSeek-V3)");
  fields.boolean("router_linear_bias", moe.router_linear_bias, kOptional,
                 "the router's linear layer has a bias (gpt-oss)");
  fields.boolean(
      "renormalised", moe.renormalised, kOmissible,
      "a token's experts share it by their probabilities over the sum of these; false: by "
      "the probabilities among all experts (DeepSeek-V2, Qwen2-MoE)");
  fields.boolean("balanced_routing", moe.balanced_routing, kOptional,
                 "the router is forced to spread tokens evenly");
  fields.number("load_variation", moe.load_variation, kRatioOrZero, kOptional,
                "standard deviation over mean of the tokens that a learned router sends to an "
                "expert ([model](../models/lowering.md#experts)); without effect where routing is "
                "balanced");
  fields.number("capacity_factor", moe.capacity_factor, kCapacityRange, kOptional,
                "from 0.25: an expert takes at most this many times the even share of tokens, and "
                "the others are dropped; 0: it takes all");
  fields.boolean("pads_to_capacity", moe.pads_to_capacity, kOptional,
                 "experts work on as many rows as they may take, full or not");
}

void describe_linear_attention(LinearAttentionSpec& linear, FieldVisitor& fields) {
  fields.choice("kind", linear.kind, kRequired,
                "mamba2: state-space duality (arXiv 2405.21060); gated-delta-net: the gated delta "
                "rule (arXiv 2412.06464)");
  fields.integer("heads", linear.heads, kHeadRange, kRequired, "heads of values");
  fields.integer("head_dim", linear.head_dim, kHeadDimRange, kRequired, "width of a head's values");
  fields.integer("key_heads", linear.key_heads, kHeadRange, kRequired,
                 "heads of keys and queries, a divisor of `heads`: the groups of Mamba-2");
  fields.integer("state_dim", linear.state_dim, kHeadDimRange, kRequired,
                 "width of a head's keys and queries");
  fields.integer("conv_width", linear.conv_width, {1, 64}, kOptional,
                 "tokens that the convolution before the recurrence spans");
  fields.boolean("conv_bias", linear.conv_bias, kOptional, "the convolution has a bias");
  fields.integer("chunk", linear.chunk, {1, 65'536}, kOptional,
                 "tokens that the kernels compute as matrix products, between two updates of the "
                 "state ([model](../models/lowering.md#linear-attention))");
}

void describe_rope_scaling(RopeScalingSpec& scaling, FieldVisitor& fields) {
  fields.choice("kind", scaling.kind, kRequired,
                "linear: all angles are divided by `factor` (arXiv 2306.15595); llama3: those of "
                "long wavelengths (arXiv 2407.21783); yarn: the same with a ramp over the elements "
                "of a head, and attention that is scaled, too (arXiv 2309.00071)");
  fields.number("factor", scaling.factor, kRopeFactorRange, kRequired,
                "how much longer sequences may be than `original_max_seq_len`");
  fields.integer("original_max_seq_len", scaling.original_max_seq_len, kTokenRange, kOptional,
                 "the longest sequence, in tokens, of pre-training");
  fields.number("low_freq_factor", scaling.low_freq_factor, kRopeFactorRange, kOptional,
                "llama3: angles whose wavelength is longer than `original_max_seq_len` over this "
                "are divided by `factor`");
  fields.number("high_freq_factor", scaling.high_freq_factor, kRopeFactorRange, kOptional,
                "llama3: angles whose wavelength is shorter than `original_max_seq_len` over this "
                "stay as they are");
  fields.number(
      "beta_fast", scaling.beta_fast, kRopeFactorRange, kOptional,
      "yarn: rotations over `original_max_seq_len` from which on angles stay as they are");
  fields.number("beta_slow", scaling.beta_slow, kRopeFactorRange, kOptional,
                "yarn: rotations up to which angles are divided by `factor`");
  fields.number("mscale", scaling.mscale, kRopeMscaleRange, kOptional,
                "yarn: weight of the logarithm of `factor` in the scale of queries and keys");
  fields.number("mscale_all_dim", scaling.mscale_all_dim, kRopeMscaleRange, kOptional,
                "yarn: the same for the elements of a head that are not rotated (DeepSeek-V2)");
}

void describe_layout(ModelSpec& model, FieldVisitor& fields) {
  fields.choice("norm", model.norm, kOptional, "normalisation");
  fields.boolean("norm_bias", model.norm_bias, kOptional, "norms have a bias: only layernorm");
  fields.number("norm_epsilon", model.norm_epsilon, kRatio, kOptional,
                "added to the variance inside of the root");
  fields.integer("norms_per_layer", model.norms_per_layer, {1, 4}, kOptional,
                 "1: one norm feeds attention and feed-forward (needs `parallel_block`); 2: one "
                 "before each; 4: also one after each");
  fields.boolean("post_norm", model.post_norm, kOmissible,
                 "the two norms stand behind attention and feed-forward block, none before them "
                 "(OLMo 2)");
  fields.boolean("final_norm", model.final_norm, kOptional, "a norm before the output head");
  fields.boolean("embedding_norm", model.embedding_norm, kOptional,
                 "a norm after the embedding (BLOOM)");
  fields.boolean("parallel_block", model.parallel_block, kOptional,
                 "attention and feed-forward read the same input and are added (GPT-NeoX, Falcon)");
  fields.choice("position", model.position, kOptional, "position encoding");
  fields.integer("position_embeddings", model.position_embeddings, kPositionRange, kOptional,
                 "rows of the learned table: at least `max_seq_len` with learned positions (OPT "
                 "has two more), else 0");
  fields.number("rotary_share", model.rotary_share, kRatio, kOptional,
                "share of a head's width that is rotated (GPT-NeoX: 0.25)");
  fields.number("rope_theta", model.rope_theta, kRopeThetaRange, kOptional,
                "base of the rotary angles (arXiv 2104.09864)");
  fields.optional_section(
      "rope_scaling", model.rope_scaling,
      "rotary angles for sequences longer than those of pre-training",
      [&](RopeScalingSpec& scaling) { describe_rope_scaling(scaling, fields); });
  fields.boolean("tied_embeddings", model.tied_embeddings, kOptional,
                 "embedding and output head share their weights");
  fields.boolean("tied_head_stored", model.tied_head_stored, kOptional,
                 "the published checkpoint stores a tied head beside the embedding (Falcon); "
                 "counts for `parameters.checkpoint` alone");
  fields.boolean("head_bias", model.head_bias, kOptional, "the output head has a bias");
  fields.integer("embedding_width", model.embedding_width, kWidthOrZeroRange, kOptional,
                 "width of an embedding row that is projected to `hidden` and back (OPT-350m); 0: "
                 "`hidden`");
  fields.number("dropout", model.dropout, kRatioOrZero, kOptional,
                "dropout probability of pre-training");
  fields.integer("mtp_layers", model.mtp_layers, kLayerCountOrZeroRange, kOptional,
                 "multi-token-prediction layers after the last layer (DeepSeek-V3); counted apart, "
                 "trained unless the plan says otherwise");
}

}  // namespace

void describe(ModelSpec& model, FieldVisitor& fields) {
  fields.header(kModelSchema, false);
  fields.text("name", model.name, kRequired, "name of the model");
  fields.text("family", model.family, kOptional, "Hugging Face `model_type`, or gpt, llama, …");
  fields.texts("aliases", model.aliases, kOptional,
               "other names of the model, its ids on the Hugging Face Hub among them");
  fields.text("source", model.source, kOptional, "the document that gives the sizes");
  fields.integer("layers", model.layers, kLayerRange, kRequired, "layers");
  fields.integer("hidden", model.hidden, kWidthRange, kRequired, "width of the hidden state");
  fields.integer("vocab", model.vocab, kVocabRange, kRequired, "tokens of the vocabulary");
  fields.integer("max_seq_len", model.max_seq_len, kTokenRange, kOptional,
                 "the longest sequence, in tokens, that the model was made for");
  fields.section("attention", kRequired, "attention of a layer",
                 [&] { describe_attention(model.attention, fields); });
  fields.section("mlp", kRequired, "feed-forward block of a dense layer",
                 [&] { describe_mlp(model.mlp, fields); });
  fields.optional_section("moe", model.moe, "mixture of experts of the sparse layers",
                          [&](MoeSpec& moe) { describe_moe(moe, fields); });
  fields.optional_section(
      "linear_attention", model.linear_attention,
      "state-space or linear attention, which replaces attention in the layers of the pattern",
      [&](LinearAttentionSpec& linear) { describe_linear_attention(linear, fields); });
  fields.text("layer_pattern", model.layer_pattern, kOmissible,
              "a letter for each layer, repeated until there are `layers` of them. Layers of one "
              "branch: `*` attention, `M` linear attention, `-` dense feed-forward, `E` experts "
              "(Nemotron-H); of two: `A` attention, `L` linear attention, each before a "
              "feed-forward block, dense or sparse as `moe` says (Qwen3-Next). Empty: `A`");
  describe_layout(model, fields);
  fields.texts("not_simulated", model.not_simulated, kOmissible,
               "parts of the published model that these sizes leave out, for reports");
  fields.document("parameters", nullptr, kOmissible,
                  "ignored: the counts that the command adds where it shows a model");
}

ModelSpec read_model(const json& value, const std::string& source) {
  ProblemList problems(source);
  ObjectReader reader(value, "", problems);
  ModelSpec model;
  read_fields(reader, [&](FieldVisitor& fields) { describe(model, fields); });
  // Stand-ins of refused values would break further rules.
  problems.throw_if_any();
  AttentionSpec& attention = model.attention;
  if (attention.head_dim == 0)
    attention.head_dim = attention.qk_nope_head_dim + attention.qk_rope_head_dim;
  check_model(
      model, [](const std::string& pointer) { return pointer; }, problems);
  problems.throw_if_any();
  return model;
}

ordered_json to_json(const ModelSpec& model) {
  ordered_json document = write_spec(model);
  document.erase("parameters");
  return document;
}

}  // namespace shardwright
