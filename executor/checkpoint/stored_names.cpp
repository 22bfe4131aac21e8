#include "executor/checkpoint/stored_names.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"

namespace shardwright::executor {
namespace {

// The executor's name and Hugging Face's.
using Names = std::pair<std::string_view, std::string_view>;

// transformers, models/llama/modeling_llama.py; biases as Qwen2 has them, norms of queries and keys
// as Qwen3.
constexpr std::array kLlamaOutside = {Names{"embedding", "model.embed_tokens"},
                                      Names{"final_norm", "model.norm"}, Names{"head", "lm_head"}};
constexpr std::array kLlamaLayer = {
    Names{"attention_norm", "input_layernorm"},    Names{"attention.q_proj", "self_attn.q_proj"},
    Names{"attention.k_proj", "self_attn.k_proj"}, Names{"attention.v_proj", "self_attn.v_proj"},
    Names{"attention.q_norm", "self_attn.q_norm"}, Names{"attention.k_norm", "self_attn.k_norm"},
    Names{"attention.o_proj", "self_attn.o_proj"}, Names{"mlp_norm", "post_attention_layernorm"},
    Names{"mlp.gate_proj", "mlp.gate_proj"},       Names{"mlp.up_proj", "mlp.up_proj"},
    Names{"mlp.down_proj", "mlp.down_proj"}};

// transformers, models/deepseek_v2/modeling_deepseek_v2.py, as published checkpoints have the
// experts: each in tensors of its own.
constexpr std::array kDeepseekLayer = {
    Names{"attention_norm", "input_layernorm"},
    Names{"attention.q_proj", "self_attn.q_proj"},
    Names{"attention.q_a_proj", "self_attn.q_a_proj"},
    Names{"attention.q_a_norm", "self_attn.q_a_layernorm"},
    Names{"attention.q_b_proj", "self_attn.q_b_proj"},
    Names{"attention.kv_a_proj", "self_attn.kv_a_proj_with_mqa"},
    Names{"attention.kv_a_norm", "self_attn.kv_a_layernorm"},
    Names{"attention.kv_b_proj", "self_attn.kv_b_proj"},
    Names{"attention.o_proj", "self_attn.o_proj"},
    Names{"mlp_norm", "post_attention_layernorm"},
    Names{"mlp.gate_proj", "mlp.gate_proj"},
    Names{"mlp.up_proj", "mlp.up_proj"},
    Names{"mlp.down_proj", "mlp.down_proj"},
    Names{"moe.router", "mlp.gate"},
    Names{"moe.experts.gate_proj", "mlp.experts.{}.gate_proj"},
    Names{"moe.experts.up_proj", "mlp.experts.{}.up_proj"},
    Names{"moe.experts.down_proj", "mlp.experts.{}.down_proj"},
    Names{"moe.shared_experts.gate_proj", "mlp.shared_experts.gate_proj"},
    Names{"moe.shared_experts.up_proj", "mlp.shared_experts.up_proj"},
    Names{"moe.shared_experts.down_proj", "mlp.shared_experts.down_proj"}};

// transformers, models/gpt2/modeling_gpt2.py. Queries, keys and values are parts of c_attn.
constexpr std::array kGpt2Outside = {Names{"embedding", "transformer.wte"},
                                     Names{"position_embedding", "transformer.wpe"},
                                     Names{"final_norm", "transformer.ln_f"}};
constexpr std::array kGpt2Layer = {
    Names{"attention_norm", "ln_1"},          Names{"attention.q_proj", "attn.c_attn"},
    Names{"attention.k_proj", "attn.c_attn"}, Names{"attention.v_proj", "attn.c_attn"},
    Names{"attention.o_proj", "attn.c_proj"}, Names{"mlp_norm", "ln_2"},
    Names{"mlp.up_proj", "mlp.c_fc"},         Names{"mlp.down_proj", "mlp.c_proj"}};

bool is_gpt2(const ModelSpec& model) {
  const AttentionSpec& attention = model.attention;
  return model.norm == NormKind::LayerNorm && model.norm_bias && !model.mlp.gated &&
         model.mlp.bias && attention.qkv_bias && attention.output_bias &&
         attention.heads == attention.kv_heads && model.position == PositionKind::Learned &&
         model.tied_embeddings && !model.moe;
}

bool is_gated(const ModelSpec& model) {
  return model.norm == NormKind::RmsNorm && model.mlp.gated &&
         model.position == PositionKind::Rotary;
}

bool is_deepseek(const ModelSpec& model) {
  if (!is_gated(model) || model.attention.kind != AttentionKind::MultiHeadLatent) return false;
  return !model.moe || (!model.moe->shared_expert_gate && !model.moe->router_bias &&
                        !model.moe->router_linear_bias && !model.mlp.bias);
}

bool is_llama(const ModelSpec& model) {
  return is_gated(model) && model.attention.kind == AttentionKind::GroupedQuery && !model.moe;
}

// "layers.3.mlp.up_proj.weight": layer "3", stem "mlp.up_proj", kind ".weight".
struct NameParts {
  std::string layer, stem, kind;

  explicit NameParts(const std::string& name) {
    constexpr std::string_view kLayers = "layers.";
    std::size_t start = 0;
    if (name.rfind(kLayers, 0) == 0) {
      const std::size_t dot = name.find('.', kLayers.size());
      layer = name.substr(kLayers.size(), dot - kLayers.size());
      start = dot + 1;
    }
    const std::size_t last = name.rfind('.');
    stem = name.substr(start, last - start);
    kind = name.substr(last);
  }
};

template <class Table>
std::string translate(const Table& table, const std::string& stem) {
  for (const auto& [ours, theirs] : table) {
    if (ours == stem) return std::string(theirs);
  }
  SHARDWRIGHT_CHECK(false, "no name in files for " + stem);
}

std::string file_name(const ModelSpec& model, const ParameterTensor& parameter) {
  const NameParts parts(parameter.name);
  if (!is_gpt2(model)) {
    if (parts.layer.empty()) return translate(kLlamaOutside, parts.stem) + parts.kind;
    return "model.layers." + parts.layer + "." +
           (is_deepseek(model) ? translate(kDeepseekLayer, parts.stem)
                               : translate(kLlamaLayer, parts.stem)) +
           parts.kind;
  }
  return parts.layer.empty() ? translate(kGpt2Outside, parts.stem) + parts.kind
                             : "transformer.h." + parts.layer + "." +
                                   translate(kGpt2Layer, parts.stem) + parts.kind;
}

// Returns which third of GPT-2's c_attn a parameter is, or -1 if it is a tensor of its own.
std::int64_t third_of(const std::string& stem) {
  if (stem == "attention.q_proj") return 0;
  if (stem == "attention.k_proj") return 1;
  return stem == "attention.v_proj" ? 2 : -1;
}

bool is_transposed(const ParameterTensor& parameter) {
  return parameter.shape.size() == 2 && parameter.place == ParameterPlace::Layer;
}

}  // namespace

std::vector<StoredPlace> stored_places(const ModelSpec& model, const ParameterTensor& parameter) {
  // The matrices of experts are stacked.
  const bool experts = parameter.shape.size() == 3;
  const std::int64_t columns =
      experts ? parameter.shape.back() : parameter.elements() / parameter.shape.front();
  StoredPlace place{parameter.name, 0, columns, 1, 0, parameter.elements() / columns};
  const bool deepseek = is_deepseek(model);
  if (!is_llama(model) && !is_gpt2(model) && !deepseek) return {place};
  place.tensor = file_name(model, parameter);
  if (deepseek && experts) {
    std::vector<StoredPlace> places;
    const std::string pattern = std::move(place.tensor);
    place.rows = parameter.shape[1];
    for (std::int64_t expert = 0; expert < parameter.shape.front(); ++expert) {
      place.tensor = fmt::format(fmt::runtime(pattern), expert);
      place.first_row = expert * place.rows;
      places.push_back(place);
    }
    return places;
  }
  if (!is_gpt2(model)) return {place};
  const std::int64_t rows = place.rows, third = third_of(NameParts(parameter.name).stem);
  if (third >= 0) place.offset = third * rows;
  if (is_transposed(parameter)) {
    place.row_stride = 1;
    place.column_stride = third < 0 ? rows : 3 * rows;
  }
  return {place};
}

std::vector<StoredTensor> stored_tensors(const ModelSpec& model) {
  std::vector<StoredTensor> tensors;
  for (const ParameterTensor& parameter : parameter_tensors(model)) {
    for (const StoredPlace& place : stored_places(model, parameter)) {
      // Keys and values are parts of the queries' tensor.
      if (place.offset > 0) continue;
      StoredTensor tensor{place.tensor, parameter.shape};
      if (tensor.shape.size() == 3 && is_deepseek(model)) tensor.shape.erase(tensor.shape.begin());
      if (is_gpt2(model)) {
        if (is_transposed(parameter)) std::swap(tensor.shape.front(), tensor.shape.back());
        if (third_of(NameParts(parameter.name).stem) == 0) tensor.shape.back() *= 3;
      }
      tensors.push_back(std::move(tensor));
    }
  }
  return tensors;
}

}  // namespace shardwright::executor
