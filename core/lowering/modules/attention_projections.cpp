// Query, key and value projections with the encoding of positions, of grouped-query attention and
// of DeepSeek's multi-head latent attention (arXiv 2405.04434). The latter projects down into
// bottlenecks, which are not split over tensor-parallel ranks, and from there up.
#include "core/lowering/modules/modules.hpp"

namespace shardwright {
namespace {

// Rotate half, two products, sum.
constexpr std::int64_t kUnfusedRopeKernels = 4;

Linear qkv_projection(const BlockWriter& w, TensorRef in) {
  const std::int64_t queries = w.shape.heads * (w.model.attention.output_gate ? 2 : 1);
  const std::int64_t query_width = queries * w.shape.head_dim;
  const std::int64_t key_width = w.shape.kv_heads * w.shape.head_dim;
  const std::int64_t width = query_width + 2 * key_width;
  const TensorRef out =
      w.activation("attention.qkv.out", static_cast<double>(w.shape.tokens * width));
  return {"attention.qkv",
          LinearSplit::Column,
          w.shape.hidden,
          width,
          in,
          out,
          w.of_layer({"attention.q_proj", "attention.k_proj", "attention.v_proj"}),
          {query_width, key_width, key_width}};
}

void write_rope(const BlockWriter& w, const std::string& name, double elements,
                std::vector<TensorRef> reads, std::vector<TensorRef> writes) {
  w.memory_op(name, OpKind::Rope, elements, elements, std::move(reads), std::move(writes),
              w.stack.fusion.rope ? 1 : kUnfusedRopeKernels);
}

// The norm over each head of queries and keys (Qwen3), or over all heads of them (OLMo 2). The
// latter's sums of squares, in fp32, are those of all tensor-parallel ranks. The backward pass of
// the norm reads its input, and that of attention its output.
void write_qk_norm(const BlockWriter& w, const std::string& name, double elements,
                   TensorRef tensor) {
  const TensorRef before = w.activation("attention.qk_norm.in", elements);
  const bool backward = w.phase == Phase::BackwardInput;
  std::vector<TensorRef> reads = {tensor}, writes = {tensor};
  (backward ? reads : writes).push_back(before);
  if (w.model.attention.qk_norm_whole && w.plan.tp > 1) {
    const double bytes = static_cast<double>(w.shape.tokens) * 2.0 * 4.0;
    const TensorRef sums = w.tensor(name + ".sums", MemoryCategory::Temporaries, bytes);
    w.collective(name + ".all_reduce", OpKind::AllReduce, Group::Tensor, bytes / w.shape.element,
                 {tensor}, {sums});
    reads.push_back(sums);
  }
  w.apply(w.memory_op(name, OpKind::Norm, backward ? 2.0 * elements : elements, elements, reads,
                      writes),
          w.of_layer({"attention.q_norm", "attention.k_norm"}));
}

double rotated_elements(const BlockWriter& w) {
  const std::int64_t heads = w.shape.heads + w.shape.kv_heads;
  return static_cast<double>(w.shape.tokens * heads * w.shape.head_dim);
}

// The bottleneck of the queries, or of keys and values: down, norm, up. Without a bottleneck of the
// queries their `up` projects the layer's input.
struct Bottleneck {
  std::string name;
  // Elements that the norm reads.
  double elements = 0.0;
  std::vector<std::string> norm_parameters;
  Linear down, up;
};

struct LatentProjections {
  Bottleneck q, kv;
  bool projects_q_down = false;
  // Elements that the rotation reads.
  double rotated = 0.0;
  TensorRef qkv, qkv_gradient;
};

LatentProjections latent_projections(const BlockWriter& w, TensorRef in) {
  const AttentionSpec& attention = w.model.attention;
  const std::int64_t rows = w.shape.residual_tokens, heads = w.shape.heads;
  const std::int64_t hidden = w.shape.hidden;
  const std::int64_t q_rank = attention.q_lora_rank, kv_rank = attention.kv_lora_rank;
  const std::int64_t q_width = heads * w.shape.head_dim;
  const std::int64_t kv_width = heads * (attention.qk_nope_head_dim + attention.v_head_dim);
  const std::int64_t kv_down_width = kv_rank + attention.qk_rope_head_dim;
  const auto activation = [&](const char* name, std::int64_t elements) {
    return w.activation(name, static_cast<double>(elements));
  };
  const TensorRef q_down = activation("attention.q_down.out", rows * q_rank);
  const TensorRef q_normed = activation("attention.q_norm.out", rows * q_rank);
  const TensorRef kv_down = activation("attention.kv_down.out", rows * kv_down_width);
  const TensorRef kv_normed = activation("attention.kv_norm.out", rows * kv_rank);
  // Keys include the shared rotary part, so that queries, keys and values have their full width.
  const std::int64_t total = q_width + heads * (attention.head_dim + attention.v_head_dim);
  LatentProjections latent;
  latent.qkv = activation("attention.qkv.out", w.shape.tokens * total);
  latent.qkv_gradient =
      w.temporary("attention.qkv.gradient", static_cast<double>(w.shape.tokens * total));
  const TensorRef kv_up =
      w.temporary("attention.kv_up.out", static_cast<double>(w.shape.tokens * kv_width));
  latent.rotated = static_cast<double>(w.shape.tokens * (q_width + kv_width));
  latent.projects_q_down = q_rank > 0;
  const auto split = LinearSplit::Column;
  latent.q = {"attention.q_norm",
              static_cast<double>(rows * q_rank),
              w.of_layer({"attention.q_a_norm"}),
              {"attention.q_down", LinearSplit::None, hidden, q_rank, in, q_down,
               w.of_layer({"attention.q_a_proj"})},
              {"attention.q_up", split, q_rank, q_width, q_normed, latent.qkv,
               w.of_layer({"attention.q_b_proj"})}};
  if (!latent.projects_q_down) {
    latent.q.up = {
        "attention.q", split, hidden, q_width, in, latent.qkv, w.of_layer({"attention.q_proj"})};
  }
  latent.kv = {"attention.kv_norm",
               static_cast<double>(rows * kv_rank),
               w.of_layer({"attention.kv_a_norm"}),
               {"attention.kv_down", LinearSplit::None, hidden, kv_down_width, in, kv_down,
                w.of_layer({"attention.kv_a_proj"})},
               {"attention.kv_up", split, kv_rank, kv_width, kv_normed, kv_up,
                w.of_layer({"attention.kv_b_proj"})}};
  return latent;
}

void write_bottleneck_norm(const BlockWriter& w, const Bottleneck& b) {
  w.apply(w.memory_op(b.name, OpKind::Norm, b.elements, b.elements, {b.down.output}, {b.up.input}),
          b.norm_parameters);
}

// Goes from the gradient of the output of `up` to that of the output of `down`, which it returns.
// `further` holds a part of the latter that does not pass the bottleneck.
TensorRef write_up_and_norm_backward(const BlockWriter& w, const Bottleneck& b, TensorRef gradient,
                                     std::optional<TensorRef> further = {}) {
  const TensorRef normed_gradient = w.temporary(b.name + ".gradient", b.elements);
  const TensorRef down_gradient = w.temporary(
      b.down.name + ".gradient", static_cast<double>(w.shape.residual_tokens * b.down.out));
  write_linear_backward(w, b.up, gradient, normed_gradient);
  std::vector<TensorRef> reads = {normed_gradient, b.down.output};
  if (further) reads.push_back(*further);
  w.apply(w.memory_op(b.name + ".backward", OpKind::Norm, 2.0 * b.elements, b.elements,
                      std::move(reads), {down_gradient}),
          b.norm_parameters);
  return down_gradient;
}

// All heads share the rotary part of the key. Each tensor-parallel rank needs that of all tokens.
TensorRef gather_rotary_key(const BlockWriter& w, TensorRef kv_down) {
  if (!w.shape.gathers_sequence) return kv_down;
  const std::int64_t elements = w.shape.tokens * w.model.attention.qk_rope_head_dim;
  return write_tensor_gather(w, "attention.rotary_key.all_gather", "attention.rotary_key.gathered",
                             static_cast<double>(elements), kv_down);
}

// The gradient of the rotary part of the key is the sum over the heads of all tensor-parallel
// ranks. The op written last computes this rank's part of it: for a rank alone, in the gradient of
// the keys itself.
TensorRef reduce_rotary_key_gradient(const BlockWriter& w, TensorRef qkv_gradient) {
  if (w.plan.tp == 1) return qkv_gradient;
  const std::int64_t width = w.model.attention.qk_rope_head_dim;
  const auto elements = static_cast<double>(w.shape.tokens * width);
  const TensorRef partial = w.temporary("attention.rotary_key.gradient.partial", elements);
  w.ops.back().writes.push_back(partial);
  const TensorRef gradient = w.temporary("attention.rotary_key.gradient",
                                         static_cast<double>(w.shape.residual_tokens * width));
  write_tensor_reduction(w, "attention.rotary_key", elements, partial, gradient);
  return gradient;
}

void write_latent_forward(const BlockWriter& w, TensorRef in) {
  const LatentProjections latent = latent_projections(w, in);
  if (latent.projects_q_down) {
    write_linear_forward(w, latent.q.down);
    write_bottleneck_norm(w, latent.q);
  }
  write_linear_forward(w, latent.q.up);
  write_linear_forward(w, latent.kv.down);
  const TensorRef rotary_key = gather_rotary_key(w, latent.kv.down.output);
  write_bottleneck_norm(w, latent.kv);
  write_linear_forward(w, latent.kv.up);
  write_rope(w, "attention.rope", latent.rotated, {latent.qkv, latent.kv.up.output, rotary_key},
             {latent.qkv});
}

}  // namespace

// The rotary part of the key comes from the projection down; its gathered copy is left out.
void write_latent_up_forward(const BlockWriter& w, TensorRef in) {
  if (w.model.attention.kind != AttentionKind::MultiHeadLatent) return;
  const LatentProjections latent = latent_projections(w, in);
  if (latent.projects_q_down) write_bottleneck_norm(w, latent.q);
  write_linear_forward(w, latent.q.up);
  write_bottleneck_norm(w, latent.kv);
  write_linear_forward(w, latent.kv.up);
  write_rope(w, "attention.rope", latent.rotated,
             {latent.qkv, latent.kv.up.output, latent.kv.down.output}, {latent.qkv});
}

namespace {

void write_latent_backward(const BlockWriter& w, TensorRef in, TensorRef in_gradient) {
  const LatentProjections latent = latent_projections(w, in);
  const TensorRef kv_gradient = w.temporary("attention.kv_up.gradient",
                                            static_cast<double>(w.shape.tokens * latent.kv.up.out));
  write_rope(w, "attention.rope.backward", latent.rotated, {latent.qkv_gradient},
             {kv_gradient, latent.qkv_gradient});
  const TensorRef rotary_gradient = reduce_rotary_key_gradient(w, latent.qkv_gradient);
  const TensorRef kv_down_gradient =
      write_up_and_norm_backward(w, latent.kv, kv_gradient, rotary_gradient);
  if (latent.projects_q_down) {
    const TensorRef q_down_gradient = write_up_and_norm_backward(w, latent.q, latent.qkv_gradient);
    write_linear_backward(w, latent.q.down, q_down_gradient, in_gradient);
  } else {
    write_linear_backward(w, latent.q.up, latent.qkv_gradient, in_gradient);
  }
  // The last of the two projections of the input adds its part of the gradient in its GEMM.
  write_linear_backward(w, latent.kv.down, kv_down_gradient, in_gradient, true);
}

}  // namespace

void write_projections_forward(const BlockWriter& w, TensorRef in) {
  if (w.model.attention.kind == AttentionKind::MultiHeadLatent) return write_latent_forward(w, in);
  const Linear qkv = qkv_projection(w, in);
  const double rotated = rotated_elements(w);
  write_linear_forward(w, qkv);
  if (w.model.attention.qk_norm) write_qk_norm(w, "attention.qkv.out.qk_norm", rotated, qkv.output);
  if (w.model.position == PositionKind::Rotary)
    write_rope(w, "attention.qkv.out.rope", rotated, {qkv.output}, {qkv.output});
}

void write_projections_backward(const BlockWriter& w, TensorRef in, TensorRef in_gradient) {
  if (w.model.attention.kind == AttentionKind::MultiHeadLatent)
    return write_latent_backward(w, in, in_gradient);
  const Linear qkv = qkv_projection(w, in);
  const TensorRef gradient =
      w.temporary("attention.qkv.gradient", static_cast<double>(w.shape.tokens * qkv.out));
  const double rotated = rotated_elements(w);
  if (w.model.position == PositionKind::Rotary)
    write_rope(w, "attention.qkv.out.rope.backward", rotated, {gradient}, {gradient});
  if (w.model.attention.qk_norm)
    write_qk_norm(w, "attention.qkv.out.qk_norm.backward", rotated, gradient);
  write_linear_backward(w, qkv, gradient, in_gradient);
}

}  // namespace shardwright
