// The parameter tensors of a decoder-only transformer, named and shaped as its checkpoint stores
// them.
#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "core/spec/model_spec.hpp"

namespace shardwright {
namespace {

// Appends the tensors of one part of a model.
class TensorList {
 public:
  TensorList(const ModelSpec& model, std::string prefix, ParameterPlace place,
             std::int64_t layer = -1)
      : model_(model), prefix_(std::move(prefix)), place_(place), layer_(layer) {}

  void add(const std::string& name, std::vector<std::int64_t> shape, ShardKind shard) {
    tensors_.push_back({prefix_ + name, place_, layer_, std::move(shape), shard, most_shards_});
  }

  // Weight [output, input] and, if there is one, bias [output]. The bias of a matrix that is split
  // along its input is added after the partial sums are, so each rank holds all of it.
  void linear(const std::string& name, std::int64_t output, std::int64_t input, ShardKind shard,
              bool bias) {
    add(name + ".weight", {output, input}, shard);
    if (bias) add(name + ".bias", {output}, without_input(shard));
  }

  // The same, split over so many ranks at most.
  void limited_linear(const std::string& name, std::int64_t output, std::int64_t input,
                      std::int64_t most_shards, bool bias) {
    most_shards_ = most_shards;
    linear(name, output, input, ShardKind::Column, bias);
    most_shards_ = 0;
  }

  // The weights of a norm over so many heads, which are split as the heads are.
  void head_norm(const std::string& name, std::int64_t heads, std::int64_t width,
                 std::int64_t most_shards) {
    most_shards_ = most_shards;
    add(name + ".weight", {heads * width}, ShardKind::Column);
    most_shards_ = 0;
  }

  // Weight and bias of the matrices of all experts of a layer.
  void experts(const std::string& name, std::int64_t output, std::int64_t input, ShardKind shard,
               bool bias) {
    add(name + ".weight", {model_.moe->experts, output, input}, shard);
    if (bias) add(name + ".bias", {model_.moe->experts, output}, without_input(shard));
  }

  void norm(const std::string& name) {
    add(name + ".weight", {model_.hidden}, ShardKind::Replicated);
    if (model_.norm_bias) add(name + ".bias", {model_.hidden}, ShardKind::Replicated);
  }

  void rms_norm(const std::string& name, std::int64_t width) {
    add(name + ".weight", {width}, ShardKind::Replicated);
  }

  std::vector<ParameterTensor> take() { return std::move(tensors_); }

 private:
  static ShardKind without_input(ShardKind shard) {
    if (shard == ShardKind::Row) return ShardKind::Replicated;
    if (shard == ShardKind::ExpertRow) return ShardKind::ExpertReplicated;
    return shard;
  }

  const ModelSpec& model_;
  std::string prefix_;
  ParameterPlace place_;
  std::int64_t layer_;
  std::int64_t most_shards_ = 0;
  std::vector<ParameterTensor> tensors_;
};

void add_grouped_query_attention(TensorList& list, const ModelSpec& model) {
  const AttentionSpec& attention = model.attention;
  const std::int64_t query = attention.heads * attention.head_dim;
  const std::int64_t key = attention.kv_heads * attention.head_dim;
  // The gate of the output comes from the same projection (Qwen3-Next).
  list.linear("attention.q_proj", attention.output_gate ? 2 * query : query, model.hidden,
              ShardKind::Column, attention.qkv_bias);
  list.limited_linear("attention.k_proj", key, model.hidden, attention.kv_heads,
                      attention.qkv_bias);
  list.limited_linear("attention.v_proj", key, model.hidden, attention.kv_heads,
                      attention.qkv_bias);
  if (attention.qk_norm_whole) {
    list.head_norm("attention.q_norm", attention.heads, attention.head_dim, 0);
    list.head_norm("attention.k_norm", attention.kv_heads, attention.head_dim, attention.kv_heads);
  } else if (attention.qk_norm) {
    list.rms_norm("attention.q_norm", attention.head_dim);
    list.rms_norm("attention.k_norm", attention.head_dim);
  }
  if (attention.sinks) list.add("attention.sinks", {attention.heads}, ShardKind::Column);
  list.linear("attention.o_proj", model.hidden, query, ShardKind::Row, attention.output_bias);
}

// DeepSeek-V2 (arXiv 2405.04434), section 2.1: queries and key-value pairs pass through a low-rank
// bottleneck; one rotary key part is shared by all heads. A bias sits on the projections down.
void add_latent_attention(TensorList& list, const ModelSpec& model) {
  const AttentionSpec& attention = model.attention;
  const std::int64_t query = attention.heads * attention.head_dim;
  if (attention.q_lora_rank > 0) {
    list.linear("attention.q_a_proj", attention.q_lora_rank, model.hidden, ShardKind::Replicated,
                attention.qkv_bias);
    list.rms_norm("attention.q_a_norm", attention.q_lora_rank);
    list.linear("attention.q_b_proj", query, attention.q_lora_rank, ShardKind::Column, false);
  } else {
    list.linear("attention.q_proj", query, model.hidden, ShardKind::Column, false);
  }
  list.linear("attention.kv_a_proj", attention.kv_lora_rank + attention.qk_rope_head_dim,
              model.hidden, ShardKind::Replicated, attention.qkv_bias);
  list.rms_norm("attention.kv_a_norm", attention.kv_lora_rank);
  list.linear("attention.kv_b_proj",
              attention.heads * (attention.qk_nope_head_dim + attention.v_head_dim),
              attention.kv_lora_rank, ShardKind::Column, false);
  list.linear("attention.o_proj", model.hidden, attention.heads * attention.v_head_dim,
              ShardKind::Row, attention.output_bias);
}

// Mamba-2 (arXiv 2405.21060, section 7) and Gated DeltaNet (arXiv 2412.06464, section 3.4): one
// projection of the input, a short convolution over the tokens, the recurrence with its decay, a
// gated norm, one projection back.
void add_linear_attention(TensorList& list, const ModelSpec& model) {
  const LinearAttentionSpec& linear = *model.linear_attention;
  const bool mamba = linear.kind == LinearAttentionKind::Mamba2;
  list.linear("mixer.in_proj", linear.in_width(), model.hidden, ShardKind::Column, false);
  list.add("mixer.conv.weight", {linear.conv_channels(), linear.conv_width}, ShardKind::Column);
  if (linear.conv_bias) list.add("mixer.conv.bias", {linear.conv_channels()}, ShardKind::Column);
  list.add("mixer.a_log.weight", {linear.heads}, ShardKind::Column);
  list.add("mixer.dt_bias.weight", {linear.heads}, ShardKind::Column);
  if (mamba) list.add("mixer.skip.weight", {linear.heads}, ShardKind::Column);
  // Mamba-2 normalises within groups, with a weight for each value; the delta rule within heads.
  if (mamba) {
    list.add("mixer.norm.weight", {linear.value_width()}, ShardKind::Column);
  } else {
    list.rms_norm("mixer.norm", linear.head_dim);
  }
  list.linear("mixer.out_proj", model.hidden, linear.value_width(), ShardKind::Row, false);
}

void add_mlp(TensorList& list, const ModelSpec& model, const std::string& name,
             std::int64_t width) {
  const bool bias = model.mlp.bias;
  if (model.mlp.gated)
    list.linear(name + ".gate_proj", width, model.hidden, ShardKind::Column, bias);
  list.linear(name + ".up_proj", width, model.hidden, ShardKind::Column, bias);
  list.linear(name + ".down_proj", model.hidden, width, ShardKind::Row, bias);
}

void add_experts(TensorList& list, const ModelSpec& model) {
  const MoeSpec& moe = *model.moe;
  const std::int64_t width = moe.expert_ffn;
  const bool bias = model.mlp.bias;
  list.add("moe.router.weight", {moe.experts, model.hidden}, ShardKind::Replicated);
  if (moe.router_bias) list.add("moe.router.bias", {moe.experts}, ShardKind::Replicated);
  if (moe.router_linear_bias)
    list.add("moe.router.linear_bias", {moe.experts}, ShardKind::Replicated);
  if (model.mlp.gated) {
    list.experts("moe.experts.gate_proj", width, model.hidden, ShardKind::ExpertColumn, bias);
  }
  list.experts("moe.experts.up_proj", width, model.hidden, ShardKind::ExpertColumn, bias);
  list.experts("moe.experts.down_proj", model.hidden, width, ShardKind::ExpertRow, bias);
  if (moe.shared_experts > 0) add_mlp(list, model, "moe.shared_experts", moe.shared_expert_ffn);
  if (moe.shared_expert_gate)
    list.linear("moe.shared_expert_gate", 1, model.hidden, ShardKind::Replicated, false);
}

void add_mixer(TensorList& list, const ModelSpec& model, LayerMixer mixer) {
  if (mixer == LayerMixer::LinearAttention) {
    add_linear_attention(list, model);
  } else if (model.attention.kind == AttentionKind::MultiHeadLatent) {
    add_latent_attention(list, model);
  } else {
    add_grouped_query_attention(list, model);
  }
}

void add_layer(TensorList& list, const ModelSpec& model, std::int64_t layer) {
  const LayerParts parts = model.parts_of(layer);
  const bool before = !model.post_norm, behind = model.post_norm || model.norms_per_layer == 4;
  if (parts.mixer != LayerMixer::None) {
    if (before) list.norm("attention_norm");
    add_mixer(list, model, parts.mixer);
    if (behind) list.norm("post_attention_norm");
  }
  if (parts.ffn == LayerFfn::None) return;
  if (before && model.norms_per_layer >= 2) list.norm("mlp_norm");
  if (parts.ffn == LayerFfn::Experts) {
    add_experts(list, model);
  } else {
    add_mlp(list, model, "mlp", model.mlp.ffn_hidden);
  }
  if (behind) list.norm("post_mlp_norm");
}

void append(std::vector<ParameterTensor>& all, std::vector<ParameterTensor> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

std::vector<ParameterTensor> embedding_parameters(const ModelSpec& model) {
  TensorList list(model, "", ParameterPlace::Embedding);
  list.add("embedding.weight", {model.vocab, model.embedding_row()}, ShardKind::Vocabulary);
  if (model.embedding_row() != model.hidden) {
    list.linear("embedding_projection", model.hidden, model.embedding_row(), ShardKind::Replicated,
                false);
  }
  if (model.position_embeddings > 0) {
    list.add("position_embedding.weight", {model.position_embeddings, model.hidden},
             ShardKind::Replicated);
  }
  if (model.embedding_norm) list.norm("embedding_norm");
  return list.take();
}

std::vector<ParameterTensor> layer_parameters(const ModelSpec& model, std::int64_t layer) {
  TensorList list(model, fmt::format("layers.{}.", layer), ParameterPlace::Layer, layer);
  add_layer(list, model, layer);
  return list.take();
}

std::vector<ParameterTensor> head_parameters(const ModelSpec& model) {
  TensorList norm(model, "", ParameterPlace::FinalNorm);
  if (model.final_norm) norm.norm("final_norm");
  TensorList head(model, "", ParameterPlace::Head);
  if (model.embedding_row() != model.hidden) {
    head.linear("head_projection", model.embedding_row(), model.hidden, ShardKind::Replicated,
                false);
  }
  if (!model.tied_embeddings)
    head.add("head.weight", {model.vocab, model.embedding_row()}, ShardKind::Vocabulary);
  if (model.head_bias) head.add("head.bias", {model.vocab}, ShardKind::Vocabulary);
  std::vector<ParameterTensor> all = norm.take();
  append(all, head.take());
  return all;
}

std::vector<ParameterTensor> mtp_parameters(const ModelSpec& model) {
  std::vector<ParameterTensor> all;
  for (std::int64_t index = 0; index < model.mtp_layers; ++index) {
    const std::int64_t layer = model.layers + index;
    TensorList list(model, fmt::format("mtp.{}.", index), ParameterPlace::Mtp, layer);
    list.norm("embedding_norm");
    list.norm("hidden_norm");
    list.linear("join_proj", model.hidden, 2 * model.hidden, ShardKind::Column, false);
    add_layer(list, model, layer);
    list.norm("final_norm");
    append(all, list.take());
  }
  return all;
}

std::vector<ParameterTensor> parameter_tensors(const ModelSpec& model) {
  std::vector<ParameterTensor> all = embedding_parameters(model);
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    append(all, layer_parameters(model, layer));
  append(all, head_parameters(model));
  append(all, mtp_parameters(model));
  return all;
}

}  // namespace shardwright
