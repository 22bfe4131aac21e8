#include "executor/checkpoint/stored_names.hpp"

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

bool is_llama(const ModelSpec& model) {
  return model.norm == NormKind::RmsNorm && model.mlp.gated &&
         model.position == PositionKind::Rotary && !model.moe;
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
  if (is_llama(model)) {
    return parts.layer.empty() ? translate(kLlamaOutside, parts.stem) + parts.kind
                               : "model.layers." + parts.layer + "." +
                                     translate(kLlamaLayer, parts.stem) + parts.kind;
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

StoredPlace stored_place(const ModelSpec& model, const ParameterTensor& parameter) {
  // The matrices of experts are stacked.
  const std::int64_t rows = parameter.shape.front();
  const bool experts = parameter.shape.size() == 3;
  const std::int64_t columns = experts ? parameter.shape.back() : parameter.elements() / rows;
  StoredPlace place{parameter.name, 0, columns, 1};
  if (!is_llama(model) && !is_gpt2(model)) return place;
  place.tensor = file_name(model, parameter);
  if (is_llama(model)) return place;
  const std::int64_t third = third_of(NameParts(parameter.name).stem);
  if (third >= 0) place.offset = third * rows;
  if (is_transposed(parameter)) {
    place.row_stride = 1;
    place.column_stride = third < 0 ? rows : 3 * rows;
  }
  return place;
}

std::vector<StoredTensor> stored_tensors(const ModelSpec& model) {
  std::vector<StoredTensor> tensors;
  for (const ParameterTensor& parameter : parameter_tensors(model)) {
    const StoredPlace place = stored_place(model, parameter);
    // Keys and values are parts of the queries' tensor.
    if (place.offset > 0) continue;
    StoredTensor tensor{place.tensor, parameter.shape};
    if (is_gpt2(model)) {
      if (is_transposed(parameter)) std::swap(tensor.shape.front(), tensor.shape.back());
      if (third_of(NameParts(parameter.name).stem) == 0) tensor.shape.back() *= 3;
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace shardwright::executor
