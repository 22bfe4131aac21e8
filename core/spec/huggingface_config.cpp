#include "core/spec/huggingface_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/nearest_name.hpp"
#include "core/spec/model_limits.hpp"

namespace shardwright::huggingface {
namespace {

// The spelling of a required key: the file's, also where its value is null, else the usual one.
std::string required_spelling(ObjectReader& config, const Keys& keys, const std::string& usual) {
  const std::string& used = spelling(config, keys);
  if (config.peek(used)) return used;
  const auto null = std::ranges::find_if(
      keys, [&config](const std::string& key) { return mentions(config, key); });
  return null == keys.end() ? usual : *null;
}

// A key that is null means one key-value head for each head; only a missing key has the default.
std::int64_t read_kv_heads(ObjectReader& config, const ModelSpec& model, std::int64_t fallback) {
  const std::string& key = kKvHeadsKeys.front();
  if (config.has(key)) return config.integer(key, kHeadRange);
  return fallback == 0 || mentions(config, key) ? model.attention.heads : fallback;
}

std::int64_t read_head_dim(ObjectReader& config, const ModelSpec& model, std::int64_t fallback) {
  if (config.has("head_dim")) return config.integer("head_dim", kHeadDimRange);
  return fallback == 0 ? even_head_dim(config, model) : fallback;
}

// The scaling of the object that a configuration has for it; none for kinds that are not trained
// with (dynamic, longrope).
std::optional<RopeScalingSpec> read_rope_scaling(ObjectReader& object) {
  const std::string type = object.text_or("rope_type", object.text_or("type", "default"));
  const auto& kinds = names_of<RopeScalingKind>();
  const auto kind = std::find(kinds.begin(), kinds.end(), type);
  if (kind == kinds.end()) return std::nullopt;
  RopeScalingSpec scaling;
  scaling.kind = static_cast<RopeScalingKind>(kind - kinds.begin());
  scaling.factor = object.number("factor", kRopeFactorRange);
  scaling.original_max_seq_len = object.integer_or("original_max_position_embeddings",
                                                   scaling.original_max_seq_len, kTokenRange);
  const auto read = [&object](const char* key, double& value, const NumberRange& range) {
    value = object.number_or(key, value, range);
  };
  read("low_freq_factor", scaling.low_freq_factor, kRopeFactorRange);
  read("high_freq_factor", scaling.high_freq_factor, kRopeFactorRange);
  read("beta_fast", scaling.beta_fast, kRopeFactorRange);
  read("beta_slow", scaling.beta_slow, kRopeFactorRange);
  read("mscale", scaling.mscale, kRopeMscaleRange);
  read("mscale_all_dim", scaling.mscale_all_dim, kRopeMscaleRange);
  return scaling;
}

}  // namespace

const Keys kLayersKeys = {"num_hidden_layers", "n_layer", "n_layers"};
const Keys kHiddenKeys = {"hidden_size", "n_embd", "n_embed", "d_model"};
const Keys kHeadsKeys = {"num_attention_heads", "n_head", "n_heads"};
const Keys kKvHeadsKeys = {"num_key_value_heads", "num_kv_heads", "n_head_kv", "kv_n_heads"};
const Keys kFfnKeys = {"intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"};
const Keys kSequenceKeys = {"max_position_embeddings", "n_positions", "max_seq_len", "seq_length"};
const Keys kActivationKeys = {"hidden_act", "hidden_activation", "activation_function",
                              "activation"};

const Keys kNormEpsilonKeys = {"rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps",
                               "norm_epsilon", "norm_eps"};
const Keys kRopeThetaKeys = {"rope_theta", "rotary_emb_base"};

const std::string& spelling(const ObjectReader& config, const Keys& keys) {
  const auto used =
      std::ranges::find_if(keys, [&config](const std::string& key) { return config.peek(key); });
  return used == keys.end() ? keys.front() : *used;
}

bool mentions(ObjectReader& config, const std::string& key) {
  const std::vector<std::string> keys = config.keys();
  return std::ranges::find(keys, key) != keys.end();
}

ModelSpec read_sizes(ObjectReader& config, const SizeKeys& usual) {
  ModelSpec model;
  model.layers = config.integer(required_spelling(config, kLayersKeys, usual.layers), kLayerRange);
  model.hidden = config.integer(required_spelling(config, kHiddenKeys, usual.hidden), kWidthRange);
  model.vocab = config.integer("vocab_size", kVocabRange);
  model.attention.heads =
      config.integer(required_spelling(config, kHeadsKeys, usual.heads), kHeadRange);
  model.attention.kv_heads = model.attention.heads;
  return model;
}

std::int64_t even_head_dim(ObjectReader& config, const ModelSpec& model) {
  const std::string& key = spelling(config, kHiddenKeys);
  // A width that was refused already has a problem of its own.
  const bool read = config.raw(key) == model.hidden;
  if (read && model.hidden % model.attention.heads != 0) {
    config.problem(key, fmt::format("{}", model.hidden),
                   fmt::format("a multiple of the {} heads", model.attention.heads));
  }
  return std::max<std::int64_t>(1, model.hidden / model.attention.heads);
}

Activation read_activation(ObjectReader& config, const std::string& fallback) {
  using enum Activation;
  // The square of relu2 is part of the same kernel.
  constexpr std::array kNames = {"gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh",
                                 "relu", "relu2",    "silu",      "swish"};
  constexpr std::array kActivations = {Gelu, Gelu, Gelu, Gelu, Relu, Relu, Silu, Silu};
  const std::string& key = spelling(config, kActivationKeys);
  const auto by_default = std::ranges::find(kNames, fallback) - kNames.begin();
  return kActivations[config.has(key) ? config.choose(key, kNames)
                                      : static_cast<std::size_t>(by_default)];
}

std::int64_t read_ffn_or_four_hidden(ObjectReader& config, const ModelSpec& model) {
  return config.integer_or(spelling(config, kFfnKeys), 4 * model.hidden, kWidthRange);
}

void learn_positions(ModelSpec& model, std::int64_t offset) {
  model.position = PositionKind::Learned;
  model.position_embeddings = model.max_seq_len + offset;
}

double read_rotary_share(ObjectReader& config, const std::string& key, double fallback) {
  if (config.has(key)) return config.number(key, kRatio);
  auto parameters = config.object_if("rope_parameters");
  return parameters ? parameters->number_or("partial_rotary_factor", fallback, kRatio) : fallback;
}

void read_rotary_angles(ObjectReader& config, ModelSpec& model, double fallback) {
  const std::string& key = spelling(config, kRopeThetaKeys);
  model.rope_theta = config.number_or(key, fallback, kRopeThetaRange);
  for (const char* inside : {"rope_scaling", "rope_parameters"}) {
    auto object = config.object_if(inside);
    if (!object) continue;
    if (!config.has(key))
      model.rope_theta = object->number_or("rope_theta", model.rope_theta, kRopeThetaRange);
    if (!model.rope_scaling) model.rope_scaling = read_rope_scaling(*object);
  }
}

double read_norm_epsilon(ObjectReader& config, double fallback) {
  return config.number_or(spelling(config, kNormEpsilonKeys), fallback, kRatio);
}

ModelSpec complete_gated(ObjectReader& config, ModelSpec model, const Defaults& defaults) {
  model.max_seq_len =
      config.integer_or(spelling(config, kSequenceKeys), defaults.max_seq_len, kTokenRange);
  model.attention.kv_heads = read_kv_heads(config, model, defaults.kv_heads);
  model.attention.head_dim = read_head_dim(config, model, defaults.head_dim);
  model.mlp.ffn_hidden = config.integer("intermediate_size", kWidthRange);
  model.mlp.activation = read_activation(config, defaults.activation);
  model.tied_embeddings = config.boolean_or("tie_word_embeddings", defaults.tied);
  model.norm_epsilon = read_norm_epsilon(config, defaults.norm_epsilon);
  read_rotary_angles(config, model, defaults.rope_theta);
  return model;
}

ModelSpec read_gated(ObjectReader& config, const Defaults& defaults) {
  return complete_gated(config, read_sizes(config), defaults);
}

void read_attention_bias(ObjectReader& config, ModelSpec& model) {
  const bool bias = config.boolean_or("attention_bias", false);
  model.attention.qkv_bias = bias;
  model.attention.output_bias = bias;
}

std::string read_layer_pattern(ObjectReader& config, const std::string& key,
                               const std::map<std::string, char>& letters,
                               const std::string& fallback) {
  if (!config.has(key)) return fallback;
  std::string pattern;
  for (const std::string& kind : config.texts(key)) {
    const auto letter = letters.find(kind);
    if (letter == letters.end()) {
      std::vector<std::string> known;
      for (const auto& [name, unused] : letters) known.push_back(name);
      config.problem(key, fmt::format("\"{}\"", kind), one_of(kind, known));
      return fallback;
    }
    pattern += letter->second;
  }
  for (std::size_t size = 1; size < pattern.size(); ++size) {
    // A text that equals itself moved on by `size` repeats its first `size` letters.
    const bool repeats =
        pattern.size() % size == 0 &&
        pattern.compare(size, std::string::npos, pattern, 0, pattern.size() - size) == 0;
    if (repeats) return pattern.substr(0, size);
  }
  return pattern;
}

std::string field_pointer(const ObjectReader& config, const std::string& base,
                          const std::string& field) {
  static const std::map<std::string, Keys> kFields = {
      {"/attention/kv_heads", kKvHeadsKeys},
      {"/attention/head_dim", {"head_dim"}},
      {"/attention/qk_rope_head_dim", {"qk_rope_head_dim"}},
      {"/attention/full_attention_interval", {"sliding_window_pattern"}},
      {"/attention/full_attention_first_layers", {"max_window_layers"}},
      {"/mlp/ffn_hidden", kFfnKeys},
      {"/moe/top_k", {"num_experts_per_tok"}},
      {"/moe/shared_expert_ffn", {"shared_expert_intermediate_size", "n_shared_experts"}},
      {"/moe/layer_interval", {"decoder_sparse_step"}},
      {"/moe/first_dense_layers", {"first_k_dense_replace", "mlp_only_layers"}},
      {"/position_embeddings", kSequenceKeys},
      {"/linear_attention/key_heads", {"linear_num_key_heads", "n_groups"}},
      {"/layer_pattern", {"layer_types", "layers_block_type", "hybrid_override_pattern"}},
  };
  // MPT keeps its attention apart; kv_n_heads is the one key there that check_model can object to.
  if (field == "/attention/kv_heads" && config.peek("attn_config"))
    return base + "/attn_config/kv_n_heads";
  // Widths of the feed-forward block and of a head that the file has not follow from the model's.
  if ((field == "/mlp/ffn_hidden" && !config.peek(spelling(config, kFfnKeys))) ||
      (field == "/attention/head_dim" && !config.peek("head_dim")))
    return base + "/" + spelling(config, kHiddenKeys);
  const auto keys = kFields.find(field);
  return keys == kFields.end() ? base : base + "/" + spelling(config, keys->second);
}

}  // namespace shardwright::huggingface
