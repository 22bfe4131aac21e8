// Random but valid models for the tests of the model readers.
#pragma once

#include <rapidcheck.h>

#include "core/spec/model_spec.hpp"

namespace shardwright {

inline std::int64_t any_size(std::int64_t least, std::int64_t most) {
  return *rc::gen::inRange<std::int64_t>(least, most + 1);
}

inline bool any_flag() {
  return *rc::gen::arbitrary<bool>();
}

inline AttentionSpec any_attention() {
  AttentionSpec attention;
  attention.kv_heads = any_size(1, 8);
  attention.heads = attention.kv_heads * any_size(1, 8);
  attention.head_dim = 2 * any_size(1, 32);
  attention.qkv_bias = any_flag();
  attention.output_bias = any_flag();
  if (any_flag()) {
    attention.kind = AttentionKind::MultiHeadLatent;
    attention.kv_heads = attention.heads;
    attention.q_lora_rank = any_size(0, 32);
    attention.kv_lora_rank = any_size(1, 32);
    attention.qk_nope_head_dim = any_size(1, 32);
    attention.qk_rope_head_dim = 2 * any_size(1, 16);
    attention.v_head_dim = any_size(1, 64);
    attention.head_dim = attention.qk_nope_head_dim + attention.qk_rope_head_dim;
  } else {
    attention.qk_norm = any_flag();
    attention.qk_norm_whole = attention.qk_norm && any_flag();
    attention.output_gate = any_flag();
  }
  if (any_flag()) {
    attention.sliding_window = any_size(1, 4096);
    attention.full_attention_interval = any_size(0, 4);
  }
  return attention;
}

inline MoeSpec any_experts(std::int64_t layers) {
  MoeSpec moe;
  moe.experts = any_size(1, 16);
  moe.top_k = any_size(1, moe.experts);
  moe.expert_ffn = any_size(1, 64);
  moe.shared_experts = any_size(0, 2);
  moe.shared_expert_ffn = moe.shared_experts * any_size(1, 64);
  moe.shared_expert_gate = moe.shared_experts > 0 && any_flag();
  moe.first_dense_layers = any_size(0, layers - 1);
  moe.layer_interval = any_size(1, layers - moe.first_dense_layers);
  moe.router_bias = any_flag();
  return moe;
}

// A model that read_model accepts, with every optional part in or out at random.
inline ModelSpec any_model() {
  ModelSpec model;
  model.name = "random";
  model.family = "random";
  model.layers = any_size(1, 9);
  model.hidden = any_size(1, 96);
  model.vocab = any_size(1, 500);
  model.max_seq_len = any_size(1, 4096);
  model.attention = any_attention();
  model.mlp = {any_size(1, 128),
               *rc::gen::element(Activation::Gelu, Activation::Relu, Activation::Silu), any_flag(),
               any_flag(), any_flag()};
  if (any_flag()) model.moe = any_experts(model.layers);
  model.norm = *rc::gen::element(NormKind::LayerNorm, NormKind::RmsNorm);
  model.norm_bias = model.norm == NormKind::LayerNorm && any_flag();
  model.parallel_block = any_flag();
  model.norms_per_layer = model.parallel_block ? *rc::gen::element<std::int64_t>(1, 2, 4)
                                               : *rc::gen::element<std::int64_t>(2, 4);
  model.final_norm = any_flag();
  model.embedding_norm = any_flag();
  model.position =
      *rc::gen::element(PositionKind::Learned, PositionKind::Rotary, PositionKind::Alibi);
  if (model.position == PositionKind::Learned)
    model.position_embeddings = model.max_seq_len + any_size(0, 2);
  model.rotary_share = static_cast<double>(any_size(1, 8)) / 8.0;
  model.norm_epsilon = 1.0 / static_cast<double>(any_size(1, 1'000'000));
  model.rope_theta = static_cast<double>(any_size(1, 1'000'000));
  if (model.position == PositionKind::Rotary && any_flag()) {
    RopeScalingSpec& scaling = model.rope_scaling.emplace();
    scaling.kind =
        *rc::gen::element(RopeScalingKind::Linear, RopeScalingKind::Llama3, RopeScalingKind::Yarn);
    scaling.factor = static_cast<double>(any_size(1, 64));
    scaling.original_max_seq_len = any_size(1, 8192);
    scaling.mscale_all_dim = static_cast<double>(any_size(0, 4)) / 4.0;
  }
  model.tied_embeddings = any_flag();
  model.head_bias = any_flag();
  model.embedding_width = any_size(0, 64);
  model.dropout = static_cast<double>(any_size(0, 4)) / 8.0;
  model.mtp_layers = any_size(0, 2);
  model.post_norm = !model.parallel_block && model.norms_per_layer == 2 && any_flag();
  if (!model.post_norm && !model.parallel_block && model.norms_per_layer == 2 && any_flag()) {
    LinearAttentionSpec linear;
    linear.key_heads = any_size(1, 4);
    linear.heads = linear.key_heads * any_size(1, 4);
    linear.head_dim = any_size(1, 32);
    linear.state_dim = any_size(1, 32);
    model.linear_attention = linear;
    model.layer_pattern = model.moe || any_flag() ? "L" : "M";
  }
  return model;
}

}  // namespace shardwright
