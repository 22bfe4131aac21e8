// A model: the sizes of a decoder-only transformer, independent of how it is trained.
//
// Field names follow the Hugging Face configurations where those agree with each other. The table
// for files, in model_json.cpp, states the meanings of the fields.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/enum_names.hpp"

namespace shardwright {

enum class NormKind : std::uint8_t { LayerNorm, RmsNorm };
constexpr auto enum_names(NormKind) {
  return std::array{"layernorm", "rmsnorm"};
}

enum class Activation : std::uint8_t { Gelu, Relu, Silu };
constexpr auto enum_names(Activation) {
  return std::array{"gelu", "relu", "silu"};
}

enum class PositionKind : std::uint8_t { Learned, Rotary, Alibi, None };
constexpr auto enum_names(PositionKind) {
  return std::array{"learned", "rotary", "alibi", "none"};
}

// The change of rotary angles for sequences that are longer than those of pre-training.
enum class RopeScalingKind : std::uint8_t {
  Linear,  // position interpolation (arXiv 2306.15595)
  Llama3,  // by wavelength, as in Llama 3.1 (arXiv 2407.21783)
  Yarn,    // arXiv 2309.00071
};
constexpr auto enum_names(RopeScalingKind) {
  return std::array{"linear", "llama3", "yarn"};
}

struct RopeScalingSpec {
  RopeScalingKind kind = RopeScalingKind::Llama3;
  double factor = 1.0;
  std::int64_t original_max_seq_len = 8192;

  // llama3 only.
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;

  // yarn only.
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  double mscale = 1.0;
  double mscale_all_dim = 0.0;

  auto operator<=>(const RopeScalingSpec&) const = default;
};

enum class AttentionKind : std::uint8_t {
  GroupedQuery,     // multi-head and multi-query attention are its two ends
  MultiHeadLatent,  // DeepSeek's MLA (arXiv 2405.04434)
};
constexpr auto enum_names(AttentionKind) {
  return std::array{"grouped-query", "multi-head-latent"};
}

// Attention of one layer. Sizes count elements; all are at least 1 unless said.
struct AttentionSpec {
  AttentionKind kind = AttentionKind::GroupedQuery;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;
  bool qkv_bias = false;
  bool output_bias = false;
  bool qk_norm = false;
  bool qk_norm_whole = false;
  bool sinks = false;
  bool output_gate = false;
  std::int64_t sliding_window = 0;
  std::int64_t full_attention_interval = 0;
  std::int64_t full_attention_first_layers = 0;

  // Multi-head latent attention only.
  std::int64_t q_lora_rank = 0;
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_nope_head_dim = 0;
  std::int64_t qk_rope_head_dim = 0;
  std::int64_t v_head_dim = 0;

  // Width of the value of one head.
  std::int64_t value_head_dim() const {
    return kind == AttentionKind::MultiHeadLatent ? v_head_dim : head_dim;
  }

  bool operator==(const AttentionSpec&) const = default;
};

enum class LinearAttentionKind : std::uint8_t {
  Mamba2,         // state-space duality (arXiv 2405.21060)
  GatedDeltaNet,  // gated delta rule (arXiv 2412.06464)
};
constexpr auto enum_names(LinearAttentionKind) {
  return std::array{"mamba2", "gated-delta-net"};
}

// A state-space or linear-attention mixer, which takes the place of attention in some layers: each
// head carries a state of head_dim x state_dim elements from token to token.
struct LinearAttentionSpec {
  LinearAttentionKind kind = LinearAttentionKind::Mamba2;
  std::int64_t heads = 1;
  std::int64_t head_dim = 1;
  std::int64_t key_heads = 1;
  std::int64_t state_dim = 1;
  std::int64_t conv_width = 4;
  bool conv_bias = false;
  std::int64_t chunk = 128;

  // Widths of all heads' values, and of all groups' keys (or queries).
  std::int64_t value_width() const { return heads * head_dim; }
  std::int64_t key_width() const { return key_heads * state_dim; }
  // Channels of the convolution: values, keys and queries.
  std::int64_t conv_channels() const { return value_width() + 2 * key_width(); }
  // Outputs of the input projection: the channels, the gate of the values, and the step sizes (and
  // for the delta rule also the write strengths) of the heads.
  std::int64_t in_width() const {
    const std::int64_t scalars = kind == LinearAttentionKind::GatedDeltaNet ? 2 : 1;
    return conv_channels() + value_width() + scalars * heads;
  }

  bool operator==(const LinearAttentionSpec&) const = default;
};

// The feed-forward block of a dense layer.
struct MlpSpec {
  std::int64_t ffn_hidden = 1;
  Activation activation = Activation::Silu;
  bool gated = true;
  bool bias = false;
  bool clamped = false;

  bool operator==(const MlpSpec&) const = default;
};

// The mixture of experts that replaces the feed-forward block in the sparse layers.
struct MoeSpec {
  std::int64_t experts = 1;
  std::int64_t top_k = 1;
  std::int64_t expert_ffn = 1;
  std::int64_t shared_experts = 0;
  std::int64_t shared_expert_ffn = 0;
  bool shared_expert_gate = false;
  std::int64_t first_dense_layers = 0;
  std::int64_t layer_interval = 1;
  std::int64_t token_nodes = 0;
  bool router_bias = false;
  bool router_linear_bias = false;
  bool renormalised = true;
  bool balanced_routing = false;
  double load_variation = 0.05;
  double capacity_factor = 0.0;
  bool pads_to_capacity = false;

  bool operator==(const MoeSpec&) const = default;
};

// The two branches of a layer.
enum class LayerMixer : std::uint8_t { None, Attention, LinearAttention };
enum class LayerFfn : std::uint8_t { None, Dense, Experts };
struct LayerParts {
  LayerMixer mixer = LayerMixer::Attention;
  LayerFfn ffn = LayerFfn::Dense;

  bool operator==(const LayerParts&) const = default;
};

struct ModelSpec {
  std::string name;
  std::string family;
  std::vector<std::string> aliases;
  std::string source;
  std::int64_t layers = 1;
  std::int64_t hidden = 1;
  std::int64_t vocab = 1;
  std::int64_t max_seq_len = 2048;

  AttentionSpec attention;
  MlpSpec mlp;
  std::optional<MoeSpec> moe;
  std::optional<LinearAttentionSpec> linear_attention;
  std::string layer_pattern;

  NormKind norm = NormKind::RmsNorm;
  bool norm_bias = false;
  double norm_epsilon = 1e-5;
  std::int64_t norms_per_layer = 2;
  bool post_norm = false;
  bool final_norm = true;
  bool embedding_norm = false;
  bool parallel_block = false;
  PositionKind position = PositionKind::Rotary;
  std::int64_t position_embeddings = 0;
  double rotary_share = 1.0;
  double rope_theta = 10'000.0;
  std::optional<RopeScalingSpec> rope_scaling;
  bool tied_embeddings = false;
  bool tied_head_stored = false;
  bool head_bias = false;
  std::int64_t embedding_width = 0;
  double dropout = 0.0;
  std::int64_t mtp_layers = 0;
  std::vector<std::string> not_simulated;

  // The branches of layer `index` (0-based): those of its letter in the pattern if there is one,
  // otherwise attention and a feed-forward block. Indices from `layers` on are those of the
  // multi-token-prediction layers, which have both.
  LayerParts parts_of(std::int64_t index) const;

  // True if layer `index` (0-based) has experts in place of the dense feed-forward block. Indices
  // from `layers` on are those of the multi-token-prediction layers.
  bool is_sparse(std::int64_t index) const;

  // Tokens that a query of layer `index` (0-based) sees at most; 0: all before it.
  std::int64_t sliding_window_of(std::int64_t index) const;

  // Width of a row of the token embedding.
  std::int64_t embedding_row() const { return embedding_width == 0 ? hidden : embedding_width; }

  bool operator==(const ModelSpec&) const = default;
};

// The split of a parameter when its layer is split over tensor-parallel or expert-parallel ranks.
enum class ShardKind : std::uint8_t {
  Replicated,    // norms, router: each tensor-parallel rank holds a copy
  Column,        // split along the output dimension over tp
  Row,           // split along the input dimension over tp
  Vocabulary,    // split along the vocabulary over tp
  ExpertColumn,  // one of the experts' matrices: experts over ep, output dimension over expert-tp
  ExpertRow,
  ExpertReplicated,
};

// The part of the model that a parameter belongs to.
enum class ParameterPlace : std::uint8_t { Embedding, Layer, FinalNorm, Head, Mtp, Adapter };

// One trained (or, for router biases, maintained) tensor.
struct ParameterTensor {
  // "layers.3.attention.q_proj.weight", for example.
  std::string name;
  ParameterPlace place = ParameterPlace::Layer;
  // 0-based; multi-token-prediction layers follow the last one. -1: outside of the layers.
  std::int64_t layer = -1;
  // [output, input] for matrices; [experts, output, input] for those of experts.
  std::vector<std::int64_t> shape;
  ShardKind shard = ShardKind::Replicated;
  // Tensor-parallel ranks that a column-split tensor can be spread over (the heads of keys and
  // values), of which further ranks hold copies; 0: any number.
  std::int64_t most_shards = 0;

  std::int64_t elements() const;
};

// All parameter tensors of a model, in the order of the forward pass. A tied output head is listed
// once, as the embedding. The parameters of multi-token-prediction layers come last.
std::vector<ParameterTensor> parameter_tensors(const ModelSpec& model);

// Parameter tensors of one layer of the given kind; names carry the layer index.
std::vector<ParameterTensor> layer_parameters(const ModelSpec& model, std::int64_t layer);

// The same for what lies outside of the layers.
std::vector<ParameterTensor> embedding_parameters(const ModelSpec& model);
// The final norm and, if untied, the output head.
std::vector<ParameterTensor> head_parameters(const ModelSpec& model);

// The multi-token-prediction layers (DeepSeek-V3, arXiv 2412.19437, section 2.2): each joins the
// hidden state with the embedding of the next token and runs one more layer. Embedding and head are
// the model's own and are not listed again.
std::vector<ParameterTensor> mtp_parameters(const ModelSpec& model);

struct ParameterCount {
  // Parameters as publishers count them: without multi-token-prediction layers.
  std::int64_t total = 0;
  // Parameters that one token meets: all but the routed experts that it is not sent to. Embedding
  // and head are included, as publishers do.
  std::int64_t active = 0;
  // Parameters of the multi-token-prediction layers without the shared embedding and head.
  std::int64_t mtp = 0;
  // The routed experts' part of `total` and of `mtp`, which expert parallelism splits.
  std::int64_t routed = 0, routed_mtp = 0;
  // Elements that the published checkpoint stores: all of these, and again what Falcon's head and
  // DeepSeek-V3's prediction layers share with the rest of the model.
  std::int64_t checkpoint = 0;

  bool operator==(const ParameterCount&) const = default;
};

// The first layer of each kind: layers with the same parts have the same parameters.
std::vector<std::int64_t> layers_of_each_kind(const ModelSpec& model);

// True if the model's sparse layers have experts that every token passes.
bool has_shared_experts(const ModelSpec& model);

ParameterCount count_parameters(const ModelSpec& model);

}  // namespace shardwright
