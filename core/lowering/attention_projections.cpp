// Query, key and value projections with their positions: grouped-query attention, and DeepSeek's
// multi-head latent attention (arXiv 2405.04434), whose down projections are not split over
// tensor-parallel ranks.
#include "core/lowering/layer_writer.hpp"

namespace shardwright {
namespace {

constexpr std::int64_t kUnfusedRopeKernels = 4;  // rotate half, two products, sum

}  // namespace

void LayerWriter::projections_forward() {
  if (model_.attention.kind == AttentionKind::MultiHeadLatent) {
    latent_projections_forward();
    return;
  }
  const std::int64_t width = (shape_.heads + 2 * shape_.kv_heads) * shape_.head_dim;
  const auto rows = static_cast<double>(shape_.tokens);
  const TensorRef in =
      gemm_input("attention.norm.out", static_cast<double>(shape_.residual_tokens * shape_.hidden));
  const TensorRef qkv = activation("attention.qkv.out", rows * static_cast<double>(width));
  linear_forward({"attention.qkv", LinearSplit::Column, shape_.hidden, width, in, qkv});
  rotate_forward("attention.qkv.out",
                 static_cast<double>((shape_.heads + shape_.kv_heads) * shape_.head_dim), qkv);
}

void LayerWriter::rotate_forward(const std::string& name, double width, TensorRef tensor) {
  const double elements = static_cast<double>(shape_.tokens) * width;
  if (model_.attention.qk_norm) {
    memory_op(name + ".qk_norm", OpKind::Norm, phase_, elements, elements, {tensor}, {tensor});
  }
  if (model_.position == PositionKind::Rotary) {
    memory_op(name + ".rope", OpKind::Rope, phase_, elements, elements, {tensor}, {tensor},
              stack_.fused_rope ? 1 : kUnfusedRopeKernels);
  }
}

void LayerWriter::rotate_backward(const std::string& name, double width, TensorRef gradient) {
  const double elements = static_cast<double>(shape_.tokens) * width;
  if (model_.position == PositionKind::Rotary) {
    memory_op(name + ".rope.backward", OpKind::Rope, Phase::BackwardInput, elements, elements,
              {gradient}, {gradient}, stack_.fused_rope ? 1 : kUnfusedRopeKernels);
  }
  if (model_.attention.qk_norm) {
    memory_op(name + ".qk_norm.backward", OpKind::Norm, Phase::BackwardInput, 2.0 * elements,
              elements, {gradient}, {gradient});
  }
}

void LayerWriter::projections_backward() {
  if (model_.attention.kind == AttentionKind::MultiHeadLatent) {
    latent_projections_backward();
    return;
  }
  const std::int64_t width = (shape_.heads + 2 * shape_.kv_heads) * shape_.head_dim;
  const auto rows = static_cast<double>(shape_.tokens);
  const auto elements = static_cast<double>(shape_.residual_tokens * shape_.hidden);
  const TensorRef in = gemm_input("attention.norm.out", elements);
  const TensorRef qkv = activation("attention.qkv.out", rows * static_cast<double>(width));
  const TensorRef gradient = temporary("attention.qkv.gradient", rows * static_cast<double>(width));
  rotate_backward("attention.qkv.out",
                  static_cast<double>((shape_.heads + shape_.kv_heads) * shape_.head_dim),
                  gradient);
  linear_backward({"attention.qkv", LinearSplit::Column, shape_.hidden, width, in, qkv}, gradient,
                  temporary("attention.norm.out.gradient", elements));
}

// Names and sizes that the forward and the backward pass of MLA share.
LayerWriter::LatentShape LayerWriter::latent_shape() {
  const AttentionSpec& attention = model_.attention;
  const auto rows = static_cast<double>(shape_.tokens),
             residual_rows = static_cast<double>(shape_.residual_tokens);
  LatentShape latent;
  latent.q_rank = attention.q_lora_rank;
  latent.kv_rank = attention.kv_lora_rank;
  latent.q_width = shape_.heads * shape_.head_dim;
  latent.kv_width = shape_.heads * (attention.qk_nope_head_dim + attention.v_head_dim);
  latent.in = gemm_input("attention.norm.out", residual_rows * static_cast<double>(shape_.hidden));
  latent.q_down =
      activation("attention.q_down.out", residual_rows * static_cast<double>(latent.q_rank));
  latent.q_normed =
      activation("attention.q_norm.out", residual_rows * static_cast<double>(latent.q_rank));
  latent.kv_down =
      activation("attention.kv_down.out",
                 residual_rows * static_cast<double>(latent.kv_rank + attention.qk_rope_head_dim));
  latent.kv_normed =
      activation("attention.kv_norm.out", residual_rows * static_cast<double>(latent.kv_rank));
  // Keys take the shared rotary part along, so that queries, keys and values have their full width.
  const std::int64_t total =
      latent.q_width + shape_.heads * (attention.head_dim + attention.v_head_dim);
  latent.qkv = activation("attention.qkv.out", rows * static_cast<double>(total));
  latent.qkv_gradient = temporary("attention.qkv.gradient", rows * static_cast<double>(total));
  return latent;
}

void LayerWriter::latent_projections_forward() {
  const LatentShape latent = latent_shape();
  const auto residual_rows = static_cast<double>(shape_.residual_tokens);
  const TensorRef kv =
      temporary("attention.kv_up.out", static_cast<double>(shape_.tokens * latent.kv_width));
  if (latent.q_rank > 0) {
    linear_forward({"attention.q_down", LinearSplit::None, shape_.hidden, latent.q_rank, latent.in,
                    latent.q_down});
    const double elements = residual_rows * static_cast<double>(latent.q_rank);
    memory_op("attention.q_norm", OpKind::Norm, phase_, elements, elements, {latent.q_down},
              {latent.q_normed});
    linear_forward({"attention.q_up", LinearSplit::Column, latent.q_rank, latent.q_width,
                    latent.q_normed, latent.qkv});
  } else {
    linear_forward(
        {"attention.q", LinearSplit::Column, shape_.hidden, latent.q_width, latent.in, latent.qkv});
  }
  const std::int64_t kv_down_width = latent.kv_rank + model_.attention.qk_rope_head_dim;
  linear_forward({"attention.kv_down", LinearSplit::None, shape_.hidden, kv_down_width, latent.in,
                  latent.kv_down});
  const TensorRef rotary_key = gather_rotary_key(latent);
  const double elements = residual_rows * static_cast<double>(latent.kv_rank);
  memory_op("attention.kv_norm", OpKind::Norm, phase_, elements, elements, {latent.kv_down},
            {latent.kv_normed});
  linear_forward({"attention.kv_up", LinearSplit::Column, latent.kv_rank, latent.kv_width,
                  latent.kv_normed, kv});
  const auto rows = static_cast<double>(shape_.tokens);
  memory_op("attention.rope", OpKind::Rope, phase_,
            rows * static_cast<double>(latent.q_width + latent.kv_width),
            rows * static_cast<double>(latent.q_width + latent.kv_width),
            {latent.qkv, kv, rotary_key}, {latent.qkv},
            stack_.fused_rope ? 1 : kUnfusedRopeKernels);
}

TensorRef LayerWriter::gather_rotary_key(const LatentShape& latent) {
  if (!shape_.gathers_sequence) return latent.kv_down;
  const auto elements = static_cast<double>(shape_.tokens * model_.attention.qk_rope_head_dim);
  const TensorRef gathered = temporary("attention.rotary_key.gathered", elements);
  collective("attention.rotary_key.all_gather", OpKind::AllGather, Group::Tensor, phase_,
             elements * shape_.element, {latent.kv_down}, {gathered});
  return gathered;
}

std::optional<TensorRef> LayerWriter::reduce_rotary_key_gradient() {
  if (plan_.tp == 1) return std::nullopt;
  const auto width = static_cast<double>(model_.attention.qk_rope_head_dim);
  const double elements = static_cast<double>(shape_.tokens) * width;
  const TensorRef partial = temporary("attention.rotary_key.gradient.partial", elements);
  ops_.back().writes.push_back(partial);
  const TensorRef gradient = temporary("attention.rotary_key.gradient",
                                       static_cast<double>(shape_.residual_tokens) * width);
  collective(shape_.gathers_sequence ? "attention.rotary_key.reduce_scatter"
                                     : "attention.rotary_key.all_reduce",
             shape_.gathers_sequence ? OpKind::ReduceScatter : OpKind::AllReduce, Group::Tensor,
             Phase::BackwardInput, elements * shape_.element, {partial}, {gradient});
  return gradient;
}

void LayerWriter::latent_projections_backward() {
  const LatentShape latent = latent_shape();
  const auto rows = static_cast<double>(shape_.tokens),
             residual_rows = static_cast<double>(shape_.residual_tokens);
  const auto kv_gradient =
      temporary("attention.kv_up.gradient", rows * static_cast<double>(latent.kv_width));
  memory_op("attention.rope.backward", OpKind::Rope, Phase::BackwardInput,
            rows * static_cast<double>(latent.q_width + latent.kv_width),
            rows * static_cast<double>(latent.q_width + latent.kv_width), {latent.qkv_gradient},
            {kv_gradient}, stack_.fused_rope ? 1 : kUnfusedRopeKernels);
  const std::optional<TensorRef> rotary_gradient = reduce_rotary_key_gradient();
  const auto in_gradient =
      temporary("attention.norm.out.gradient", residual_rows * static_cast<double>(shape_.hidden));

  const double kv_elements = residual_rows * static_cast<double>(latent.kv_rank);
  const TensorRef kv_normed_gradient = temporary("attention.kv_norm.gradient", kv_elements);
  const TensorRef kv_down_gradient = temporary(
      "attention.kv_down.gradient",
      residual_rows * static_cast<double>(latent.kv_rank + model_.attention.qk_rope_head_dim));
  linear_backward({"attention.kv_up",
                   LinearSplit::Column,
                   latent.kv_rank,
                   latent.kv_width,
                   latent.kv_normed,
                   {}},
                  kv_gradient, kv_normed_gradient);
  memory_op("attention.kv_norm.backward", OpKind::Norm, Phase::BackwardInput, 2.0 * kv_elements,
            kv_elements, {latent.kv_down, kv_normed_gradient}, {kv_down_gradient});
  if (rotary_gradient) ops_.back().reads.push_back(*rotary_gradient);
  latent_queries_backward(latent, in_gradient);
  // The last of the two adds its part in its GEMM.
  linear_backward({"attention.kv_down",
                   LinearSplit::None,
                   shape_.hidden,
                   latent.kv_rank + model_.attention.qk_rope_head_dim,
                   latent.in,
                   {}},
                  kv_down_gradient, in_gradient, true);
}

void LayerWriter::latent_queries_backward(const LatentShape& latent, TensorRef in_gradient) {
  if (latent.q_rank == 0) {
    linear_backward(
        {"attention.q", LinearSplit::Column, shape_.hidden, latent.q_width, latent.in, {}},
        latent.qkv_gradient, in_gradient);
    return;
  }
  const double q_elements =
      static_cast<double>(shape_.residual_tokens) * static_cast<double>(latent.q_rank);
  const TensorRef q_normed_gradient = temporary("attention.q_norm.gradient", q_elements);
  const TensorRef q_down_gradient = temporary("attention.q_down.gradient", q_elements);
  linear_backward(
      {"attention.q_up", LinearSplit::Column, latent.q_rank, latent.q_width, latent.q_normed, {}},
      latent.qkv_gradient, q_normed_gradient);
  memory_op("attention.q_norm.backward", OpKind::Norm, Phase::BackwardInput, 2.0 * q_elements,
            q_elements, {latent.q_down, q_normed_gradient}, {q_down_gradient});
  linear_backward(
      {"attention.q_down", LinearSplit::None, shape_.hidden, latent.q_rank, latent.in, {}},
      q_down_gradient, in_gradient);
}

}  // namespace shardwright
