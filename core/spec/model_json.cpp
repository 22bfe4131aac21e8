#include "core/spec/model_json.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/spec/model_check.hpp"
#include "core/spec/model_limits.hpp"

namespace shardwright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

template <class E>
EnumNames<E> names_of(std::initializer_list<E> values) {
  EnumNames<E> names;
  for (const E value : values) names.push_back({name_of(value), value});
  return names;
}

const EnumNames<NormKind>& norm_names() {
  static const auto kNames = names_of({NormKind::LayerNorm, NormKind::RmsNorm});
  return kNames;
}

const EnumNames<Activation>& activation_names() {
  static const auto kNames = names_of({Activation::Gelu, Activation::Relu, Activation::Silu});
  return kNames;
}

const EnumNames<PositionKind>& position_names() {
  static const auto kNames =
      names_of({PositionKind::Learned, PositionKind::Rotary, PositionKind::Alibi});
  return kNames;
}

const EnumNames<AttentionKind>& attention_names() {
  static const auto kNames =
      names_of({AttentionKind::GroupedQuery, AttentionKind::MultiHeadLatent});
  return kNames;
}

void read_latent(ObjectReader& reader, AttentionSpec& attention) {
  attention.q_lora_rank = reader.integer_or("q_lora_rank", 0, kWidthOrZeroRange);
  attention.kv_lora_rank = reader.integer("kv_lora_rank", kWidthRange);
  attention.qk_nope_head_dim = reader.integer("qk_nope_head_dim", kHeadDimRange);
  attention.qk_rope_head_dim = reader.integer("qk_rope_head_dim", kHeadDimRange);
  attention.v_head_dim = reader.integer("v_head_dim", kHeadDimRange);
  attention.head_dim = reader.integer_or(
      "head_dim", attention.qk_nope_head_dim + attention.qk_rope_head_dim, kHeadDimRange);
}

AttentionSpec read_attention(ObjectReader reader) {
  AttentionSpec attention;
  attention.kind = reader.choice_or("kind", attention.kind, attention_names());
  attention.heads = reader.integer("heads", kHeadRange);
  attention.kv_heads = reader.integer_or("kv_heads", attention.heads, kHeadRange);
  if (attention.kind == AttentionKind::MultiHeadLatent) {
    read_latent(reader, attention);
  } else {
    attention.head_dim = reader.integer("head_dim", kHeadDimRange);
  }
  attention.qkv_bias = reader.boolean_or("qkv_bias", attention.qkv_bias);
  attention.output_bias = reader.boolean_or("output_bias", attention.output_bias);
  attention.qk_norm = reader.boolean_or("qk_norm", attention.qk_norm);
  attention.sinks = reader.boolean_or("sinks", attention.sinks);
  attention.sliding_window = reader.integer_or("sliding_window", 0, kTokenOrZeroRange);
  attention.full_attention_interval =
      reader.integer_or("full_attention_interval", 0, kLayerCountOrZeroRange);
  attention.full_attention_first_layers =
      reader.integer_or("full_attention_first_layers", 0, kLayerCountOrZeroRange);
  reader.refuse_unknown_keys();
  return attention;
}

MlpSpec read_mlp(ObjectReader reader) {
  MlpSpec mlp;
  mlp.ffn_hidden = reader.integer("ffn_hidden", kWidthRange);
  mlp.activation = reader.choice_or("activation", mlp.activation, activation_names());
  mlp.gated = reader.boolean_or("gated", mlp.gated);
  mlp.bias = reader.boolean_or("bias", mlp.bias);
  mlp.clamped = reader.boolean_or("clamped", mlp.clamped);
  reader.refuse_unknown_keys();
  return mlp;
}

MoeSpec read_moe(ObjectReader reader) {
  MoeSpec moe;
  moe.experts = reader.integer("experts", kExpertRange);
  moe.top_k = reader.integer("top_k", kExpertRange);
  moe.expert_ffn = reader.integer("expert_ffn", kWidthRange);
  moe.shared_experts = reader.integer_or("shared_experts", 0, kExpertOrZeroRange);
  moe.shared_expert_ffn = reader.integer_or("shared_expert_ffn", 0, kWidthOrZeroRange);
  moe.shared_expert_gate = reader.boolean_or("shared_expert_gate", moe.shared_expert_gate);
  moe.first_dense_layers = reader.integer_or("first_dense_layers", 0, kLayerCountOrZeroRange);
  moe.layer_interval = reader.integer_or("layer_interval", moe.layer_interval, kLayerRange);
  moe.token_nodes = reader.integer_or("token_nodes", 0, kExpertOrZeroRange);
  moe.router_bias = reader.boolean_or("router_bias", moe.router_bias);
  moe.router_linear_bias = reader.boolean_or("router_linear_bias", moe.router_linear_bias);
  moe.balanced_routing = reader.boolean_or("balanced_routing", moe.balanced_routing);
  moe.load_variation = reader.number_or("load_variation", moe.load_variation, kRatioOrZero);
  moe.capacity_factor = reader.number_or("capacity_factor", moe.capacity_factor, kCapacityRange);
  moe.pads_to_capacity = reader.boolean_or("pads_to_capacity", moe.pads_to_capacity);
  reader.refuse_unknown_keys();
  return moe;
}

void read_identity(ObjectReader& reader, ModelSpec& model) {
  constexpr IntegerRange kVersions{1, 1};
  const std::string schema = reader.text("schema");
  if (!schema.empty() && schema != kModelSchema)
    reader.problem("schema", fmt::format("\"{}\"", schema), fmt::format("\"{}\"", kModelSchema));
  reader.integer("version", kVersions);
  model.name = reader.name("name");
  model.family = reader.text_or("family", "");
  if (reader.has("aliases")) model.aliases = reader.texts("aliases");
  model.source = reader.text_or("source", "");
}

void read_layout(ObjectReader& reader, ModelSpec& model) {
  model.norm = reader.choice_or("norm", model.norm, norm_names());
  model.norm_bias = reader.boolean_or("norm_bias", model.norm_bias);
  model.norm_epsilon = reader.number_or("norm_epsilon", model.norm_epsilon, kRatio);
  model.norms_per_layer = reader.integer_or("norms_per_layer", model.norms_per_layer, {1, 4});
  model.final_norm = reader.boolean_or("final_norm", model.final_norm);
  model.embedding_norm = reader.boolean_or("embedding_norm", model.embedding_norm);
  model.parallel_block = reader.boolean_or("parallel_block", model.parallel_block);
  model.position = reader.choice_or("position", model.position, position_names());
  model.position_embeddings = reader.integer_or("position_embeddings", 0, kPositionRange);
  model.rotary_share = reader.number_or("rotary_share", model.rotary_share, kRatio);
  model.rope_theta = reader.number_or("rope_theta", model.rope_theta, kRopeThetaRange);
  model.tied_embeddings = reader.boolean_or("tied_embeddings", model.tied_embeddings);
  model.tied_head_stored = reader.boolean_or("tied_head_stored", model.tied_head_stored);
  model.head_bias = reader.boolean_or("head_bias", model.head_bias);
  model.embedding_width = reader.integer_or("embedding_width", 0, kWidthOrZeroRange);
  model.dropout = reader.number_or("dropout", model.dropout, kRatioOrZero);
  model.mtp_layers = reader.integer_or("mtp_layers", 0, kLayerCountOrZeroRange);
}

ordered_json attention_json(const AttentionSpec& attention) {
  ordered_json out;
  out["kind"] = name_of(attention.kind);
  out["heads"] = attention.heads;
  out["kv_heads"] = attention.kv_heads;
  out["head_dim"] = attention.head_dim;
  if (attention.kind == AttentionKind::MultiHeadLatent) {
    out["q_lora_rank"] = attention.q_lora_rank;
    out["kv_lora_rank"] = attention.kv_lora_rank;
    out["qk_nope_head_dim"] = attention.qk_nope_head_dim;
    out["qk_rope_head_dim"] = attention.qk_rope_head_dim;
    out["v_head_dim"] = attention.v_head_dim;
  }
  out["qkv_bias"] = attention.qkv_bias;
  out["output_bias"] = attention.output_bias;
  out["qk_norm"] = attention.qk_norm;
  out["sinks"] = attention.sinks;
  out["sliding_window"] = attention.sliding_window;
  out["full_attention_interval"] = attention.full_attention_interval;
  out["full_attention_first_layers"] = attention.full_attention_first_layers;
  return out;
}

ordered_json mlp_json(const MlpSpec& mlp) {
  ordered_json section = {{"ffn_hidden", mlp.ffn_hidden},
                          {"activation", name_of(mlp.activation)},
                          {"gated", mlp.gated},
                          {"bias", mlp.bias}};
  if (mlp.clamped) section["clamped"] = true;
  return section;
}

ordered_json moe_json(const MoeSpec& moe) {
  return {{"experts", moe.experts},
          {"top_k", moe.top_k},
          {"expert_ffn", moe.expert_ffn},
          {"shared_experts", moe.shared_experts},
          {"shared_expert_ffn", moe.shared_expert_ffn},
          {"shared_expert_gate", moe.shared_expert_gate},
          {"first_dense_layers", moe.first_dense_layers},
          {"layer_interval", moe.layer_interval},
          {"token_nodes", moe.token_nodes},
          {"router_bias", moe.router_bias},
          {"router_linear_bias", moe.router_linear_bias},
          {"balanced_routing", moe.balanced_routing},
          {"load_variation", moe.load_variation},
          {"capacity_factor", moe.capacity_factor},
          {"pads_to_capacity", moe.pads_to_capacity}};
}

}  // namespace

ModelSpec read_model(const json& value, const std::string& source) {
  ProblemList problems(source);
  ObjectReader reader(value, "", problems);
  ModelSpec model;
  read_identity(reader, model);
  model.layers = reader.integer("layers", kLayerRange);
  model.hidden = reader.integer("hidden", kWidthRange);
  model.vocab = reader.integer("vocab", kVocabRange);
  model.max_seq_len = reader.integer_or("max_seq_len", model.max_seq_len, kTokenRange);
  model.attention = read_attention(reader.object("attention"));
  model.mlp = read_mlp(reader.object("mlp"));
  if (auto moe = reader.object_if("moe")) model.moe = read_moe(*moe);
  read_layout(reader, model);
  // The counts that `shardwright models show --json` adds follow from the sizes.
  reader.raw("parameters");
  reader.refuse_unknown_keys();
  // Stand-ins of refused values would break further rules.
  problems.throw_if_any();
  check_model(
      model, [](const std::string& pointer) { return pointer; }, problems);
  problems.throw_if_any();
  return model;
}

ordered_json to_json(const ModelSpec& model) {
  ordered_json out;
  out["schema"] = kModelSchema;
  out["version"] = 1;
  out["name"] = model.name;
  out["family"] = model.family;
  out["aliases"] = model.aliases;
  out["source"] = model.source;
  out["layers"] = model.layers;
  out["hidden"] = model.hidden;
  out["vocab"] = model.vocab;
  out["max_seq_len"] = model.max_seq_len;
  out["attention"] = attention_json(model.attention);
  out["mlp"] = mlp_json(model.mlp);
  if (model.moe) out["moe"] = moe_json(*model.moe);
  out["norm"] = name_of(model.norm);
  out["norm_bias"] = model.norm_bias;
  out["norm_epsilon"] = model.norm_epsilon;
  out["norms_per_layer"] = model.norms_per_layer;
  out["final_norm"] = model.final_norm;
  out["embedding_norm"] = model.embedding_norm;
  out["parallel_block"] = model.parallel_block;
  out["position"] = name_of(model.position);
  out["position_embeddings"] = model.position_embeddings;
  out["rotary_share"] = model.rotary_share;
  out["rope_theta"] = model.rope_theta;
  out["tied_embeddings"] = model.tied_embeddings;
  out["tied_head_stored"] = model.tied_head_stored;
  out["head_bias"] = model.head_bias;
  out["embedding_width"] = model.embedding_width;
  out["dropout"] = model.dropout;
  out["mtp_layers"] = model.mtp_layers;
  return out;
}

}  // namespace shardwright
