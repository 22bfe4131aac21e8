#include "planner/import/megatron_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace shardwright::planner {
namespace {

// Arguments of models whose layers no ModelSpec describes, and what is expected instead.
constexpr std::array<std::pair<const char*, const char*>, 12> kOtherLayers = {{
    {"decoder_num_layers", "none: a model without an encoder"},
    {"heterogeneous_layers_config_path", "none: layers that are equal or follow a pattern"},
    {"heterogeneous_layers_config_encoded_json", "none: layers that are equal or follow a pattern"},
    {"vision_model_type", "none: a model of text alone"},
    {"language_model_type", "none: a model of text alone"},
    {"disable_vision_class_token", "False: a model of text alone"},
    {"task", "none: a program that trains a model"},
    {"retro_add_retriever", "False: a model without retrieval"},
    {"moe_latent_size", "none: experts of the width of the model"},
    {"enable_mhc_connections", "False: one residual stream"},
    {"enable_hyper_connections", "False: one residual stream"},
    {"mtp_use_repeated_layer", "False: prediction layers with weights of their own"},
}};

// Words in the names of programs that train other models than decoders of text, or none.
constexpr std::array<std::string_view, 16> kOtherPrograms = {
    "bert",  "t5",        "ict",      "retro",      "vision",    "vlm",    "mimo", "multimodal",
    "llava", "biencoder", "generate", "generation", "inference", "server", "eval", "evaluate"};

void refuse_other_layers(MegatronSettings& settings, const ModelSpec& model) {
  const auto is_other = [](const std::string& word) {
    return std::ranges::find(kOtherPrograms, word) != kOtherPrograms.end();
  };
  if (std::ranges::any_of(settings.words_of_program(), is_other))
    settings.refuse_program("one that trains a decoder of text, as pretrain_gpt.py does");
  for (const auto& [name, expected] : kOtherLayers) {
    const std::string value = settings.text(name);
    if (!value.empty() && value != "False" && value != "false" && value != "0")
      settings.refuse_value(name, expected);
  }
  // Logs repeat the number of layers under this name.
  const std::int64_t encoder = settings.count("encoder_num_layers", model.layers);
  if (encoder != model.layers)
    settings.refuse_value("encoder_num_layers",
                          fmt::format("the {} layers of a model without an encoder", model.layers));
  if (settings.text("tokenizer_type").starts_with("BertWordPiece"))
    settings.refuse_value("tokenizer_type", "that of a decoder: encoders are not simulated");
}

bool trains_hybrids(const std::vector<std::string>& words_of_program) {
  return std::ranges::any_of(words_of_program, [](const std::string& word) {
    return word == "mamba" || word == "hybrid";
  });
}

// The argument that has the pattern; "" if there is none. Logs have it under both names.
std::string pattern_argument(MegatronSettings& settings) {
  std::string name;
  for (const char* each : {"hybrid_override_pattern", "hybrid_layer_pattern"})
    if (!settings.text(each).empty()) name = each;
  return name;
}

// The pattern's letters before the prediction layers, without the ends of pipeline chunks.
std::string layers_of_pattern(const std::string& pattern) {
  std::string letters = pattern.substr(0, pattern.find('/'));
  std::erase(letters, '|');
  return letters;
}

// Patterns without one: attention and feed-forward blocks evenly among layers of Mamba, as
// pattern_from_ratios in megatron/core/models/hybrid/hybrid_layer_allocation.py at commit
// d98e8a64ddf3 of https://github.com/NVIDIA/Megatron-LM lays them out.
std::string pattern_of_ratios(std::int64_t layers, double attention_ratio, double mlp_ratio) {
  const auto part = [layers](double ratio) {
    return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(layers) * ratio));
  };
  std::string pattern(static_cast<std::size_t>(layers), 'M');
  const auto spread = [&pattern](char letter, double distance) {
    double left = distance;
    for (char& layer : pattern) {
      if (layer != 'M') continue;
      const bool is_due = left < 0.5;
      if (is_due) layer = letter;
      left += is_due ? distance : -1.0;
    }
  };
  const std::int64_t attention = part(attention_ratio), mlp = part(mlp_ratio);
  spread('*', static_cast<double>(layers - attention) / static_cast<double>(attention + 1));
  if (mlp > 0)
    spread('-', static_cast<double>(layers - attention - mlp) / static_cast<double>(mlp));
  return pattern;
}

// The shortest text that repeats to the pattern.
std::string shortest_period(const std::string& pattern) {
  for (std::size_t size = 1; size < pattern.size(); ++size)
    if (pattern.size() % size == 0 &&
        pattern.compare(size, std::string::npos, pattern, 0, pattern.size() - size) == 0)
      return pattern.substr(0, size);
  return pattern;
}

LinearAttentionSpec mamba_of(MegatronSettings& settings, const ModelSpec& model) {
  constexpr std::int64_t kExpansion = 2;
  LinearAttentionSpec linear;
  linear.head_dim = std::max<std::int64_t>(1, settings.count("mamba_head_dim", 64));
  linear.heads = settings.count("mamba_num_heads", kExpansion * model.hidden / linear.head_dim);
  linear.key_heads = settings.count("mamba_num_groups", 8);
  linear.state_dim = settings.count("mamba_state_dim", 128);
  linear.conv_bias = true;
  return linear;
}

LinearAttentionSpec delta_rule_of(MegatronSettings& settings) {
  LinearAttentionSpec linear;
  linear.kind = LinearAttentionKind::GatedDeltaNet;
  linear.heads = settings.count("linear_num_value_heads", 32);
  linear.head_dim = settings.count("linear_value_head_dim", 128);
  linear.key_heads = settings.count("linear_num_key_heads", 16);
  linear.state_dim = settings.count("linear_key_head_dim", 128);
  linear.conv_width = settings.count("linear_conv_kernel_dim", 4);
  linear.chunk = 64;
  return linear;
}

// The layers of multi-token prediction in a hybrid model: "/*E/*E" behind the pattern, or an
// argument of their own. Only those that are one layer of a transformer are simulated.
void read_predictions(MegatronSettings& settings, const std::string& name, std::string_view behind,
                      ModelSpec& model) {
  const std::string expected = model.moe ? "*E" : "*-";
  std::int64_t depths = 0;
  while (!behind.empty()) {
    behind.remove_prefix(1);
    const std::string_view layer = behind.substr(0, behind.find('/'));
    behind.remove_prefix(layer.size());
    if (layer != expected)
      return settings.refuse_value(
          name,
          fmt::format("\"/{}\" behind the pattern: prediction layers of a transformer", expected));
    ++depths;
  }
  if (depths > 0) {
    model.mtp_layers = depths;
  } else if (model.mtp_layers > 0 && settings.text("mtp_hybrid_override_pattern") != expected) {
    settings.refuse_value("mtp_num_layers",
                          fmt::format("none, or prediction layers \"{}\"", expected));
  }
}

// Letters of one branch each: M Mamba-2, G gated delta rule, * attention, + latent attention, -
// feed-forward block, E experts.
void read_hybrid_pattern(MegatronSettings& settings, const std::string& name,
                         const std::string& pattern, ModelSpec& model) {
  std::string letters = layers_of_pattern(pattern);
  const auto has = [&](char letter) { return letters.find(letter) != std::string::npos; };
  if (letters.empty() || letters.find_first_not_of("MG*+-E") != std::string::npos)
    return settings.refuse_value(name, "letters out of M, G, *, +, - and E");
  if (static_cast<std::int64_t>(letters.size()) != model.layers)
    return settings.refuse_value(name, fmt::format("a letter for each of the {} layers, not {}",
                                                   model.layers, letters.size()));
  if (has('M') && has('G'))
    return settings.refuse_value(name, "M or G: linear attention of one kind");
  if (has('E') != model.moe.has_value())
    return settings.refuse_value(name, model.moe ? "an E, as the arguments state experts"
                                                 : "no E, as the arguments state no experts");
  if (has('+') != (model.attention.kind == AttentionKind::MultiHeadLatent) &&
      (has('+') || has('*')))
    return settings.refuse_value(name, "+ with --multi-latent-attention, and * without");
  if (has('M')) model.linear_attention = mamba_of(settings, model);
  if (has('G')) model.linear_attention = delta_rule_of(settings);
  std::ranges::replace(letters, 'G', 'M');
  std::ranges::replace(letters, '+', '*');
  model.layer_pattern = shortest_period(letters);
  const std::size_t behind = std::min(pattern.find('/'), pattern.size());
  read_predictions(settings, name, std::string_view(pattern).substr(behind), model);
}

// Linear attention in place of attention: in all layers but each nth one, or as a list says.
void read_linear_layers(MegatronSettings& settings, ModelSpec& model) {
  std::string name = "experimental_attention_variant";
  if (settings.text(name).empty()) name = "linear_attention_type";
  const std::string kind = settings.text(name), layers = settings.text("linear_attention_freq");
  if (kind.empty() && layers.empty()) return;
  if (kind != "gated_delta_net" && kind != "gdn")
    return settings.refuse_value(kind.empty() ? "linear_attention_freq" : name,
                                 "attention in all layers, or gated_delta_net");
  std::string letters(static_cast<std::size_t>(model.layers), 'L');
  if (layers.find_first_not_of("0123456789") == std::string::npos) {
    const std::int64_t each = settings.count("linear_attention_freq", 0);
    if (each < 1)
      return settings.refuse_value("linear_attention_freq",
                                   "the interval of layers with attention");
    for (std::int64_t layer = each; layer <= model.layers; layer += each)
      letters[static_cast<std::size_t>(layer - 1)] = 'A';
  } else if (const auto flags = layer_flags(layers, model.layers)) {
    for (std::size_t layer = 0; layer < letters.size(); ++layer)
      if (!(*flags)[layer]) letters[layer] = 'A';
  } else {
    return settings.refuse_value("linear_attention_freq",
                                 "a number, or a list with a number for each layer");
  }
  model.layer_pattern = shortest_period(letters);
  if (letters.find('L') == std::string::npos)
    model.layer_pattern.clear();
  else
    model.linear_attention = delta_rule_of(settings);
}

}  // namespace

std::int64_t number_of_layers(MegatronSettings& settings) {
  const std::string pattern = settings.text(pattern_argument(settings));
  if (!settings.text("num_layers").empty()) return settings.required("num_layers");
  if (!pattern.empty()) return static_cast<std::int64_t>(layers_of_pattern(pattern).size());
  const std::int64_t encoder = settings.count("encoder_num_layers", 0);
  return encoder > 0 ? encoder : settings.required("num_layers");
}

void read_layer_kinds(MegatronSettings& settings, ModelSpec& model) {
  refuse_other_layers(settings, model);
  model.attention.output_gate = settings.is_on("attention_output_gate");
  const std::string name = pattern_argument(settings);
  const double attention = settings.real("hybrid_attention_ratio", 0.0);
  const double mlp = settings.real("hybrid_mlp_ratio", 0.0);
  const bool is_hybrid = settings.is_on("is_hybrid_model") || attention > 0.0 || mlp > 0.0 ||
                         trains_hybrids(settings.words_of_program());
  // Their module, which all hybrid models state.
  if (is_hybrid || !name.empty()) settings.text("spec");
  if (!name.empty()) return read_hybrid_pattern(settings, name, settings.text(name), model);
  if (!is_hybrid) return read_linear_layers(settings, model);
  if (attention < 0.0 || mlp < 0.0 || attention + mlp > 1.0)
    return settings.refuse_value("hybrid_attention_ratio", "ratios of 0 to 1 in all");
  read_hybrid_pattern(settings, "hybrid_attention_ratio",
                      pattern_of_ratios(model.layers, attention, mlp), model);
}

std::vector<std::int64_t> hybrid_chunks(MegatronSettings& settings) {
  const std::string name = pattern_argument(settings);
  std::vector<std::int64_t> chunks = {0};
  for (const char letter : settings.text(name)) {
    if (letter == '/') break;
    if (letter == '|')
      chunks.push_back(0);
    else
      ++chunks.back();
  }
  if (chunks.size() == 1) chunks.clear();
  return chunks;
}

}  // namespace shardwright::planner
