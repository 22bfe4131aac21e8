// Multi-head latent attention (arXiv 2405.04434, section 2.1): what differs from other attention
// before its core, whose rows hold the heads' queries, keys and values as others do.
//
//   norms of the bottlenecks  (x) -> (y)
//                             backward (dy, x, [gradient of the rotary key]) -> (dx)
//   rotation                  (queries, keys and values before it, rotary key) -> (qkv)
//                             backward (dqkv) -> (gradient of keys and values, dqkv, [that of the
//                             rotary key])
//
// A row of the projection down of keys and values ends with the rotary key, which all heads share.
// Its gradient is the sum of theirs. A rank without tensor parallelism leaves it where the first
// head's is. The projection up of the queries writes them to their place among queries, keys and
// values.
#include <variant>

#include "core/base/error.hpp"
#include "executor/runtime/op_runner.hpp"

namespace shardwright::executor {
namespace {

// That of the code of DeepSeek-V2 and DeepSeek-V3, whatever the other norms of a model have.
constexpr double kBottleneckEpsilon = 1e-6;

// A head's first column in a row.
std::int64_t column(std::int64_t before, std::int64_t head, std::int64_t width) {
  return before + head * width;
}

}  // namespace

bool OpRunner::is_latent() const {
  return model_.attention.kind == AttentionKind::MultiHeadLatent;
}

std::int64_t OpRunner::row_width(TensorRef ref, std::int64_t rows) const {
  return static_cast<std::int64_t>(elements_of(ref)) / rows;
}

std::int64_t OpRunner::output_width(TensorRef ref, std::int64_t rows) const {
  return is_latent() ? row_width(ref, rows) : 0;
}

void OpRunner::bottleneck_norm(const BoundOp& bound) {
  const AttentionSpec& attention = model_.attention;
  const Weights weights = weights_of(bound, 0);
  const bool of_queries = bound.op->parameters.front().ends_with("q_a_norm");
  NormShape shape{NormKind::RmsNorm, shape_.residual_tokens, attention.q_lora_rank,
                  kBottleneckEpsilon};
  if (!of_queries) {
    shape.width = attention.kv_lora_rank;
    shape.input_width = attention.kv_lora_rank + attention.qk_rope_head_dim;
  }
  if (!is_backward(bound.op->phase))
    return kernels_.norm(shape, bound.read(0), weights.weight, nullptr, bound.write(0),
                         bound.queue);
  kernels_.norm_backward(shape, bound.read(0), nullptr, bound.read(1), weights.weight,
                         bound.write(0), weights.weight_gradient, nullptr, bound.queue);
  if (of_queries) return;
  // Without tensor parallelism it lies where the first head's gradient is.
  const bool alone = program_.plan.tp == 1;
  const std::int64_t rotary = attention.qk_rope_head_dim;
  const void* gradient = at(bound.read(2), alone ? query_width() + attention.qk_nope_head_dim : 0);
  kernels_.copy_columns(shape.rows, rotary, gradient,
                        alone ? query_width() + key_value_width() : rotary,
                        at(bound.write(0), shape.width), shape.input_width, bound.queue);
}

RopeShape OpRunner::latent_rope_shape() const {
  RopeShape shape = rope_shape();
  shape.row_width = query_width() + key_value_width();
  shape.rotated = model_.attention.qk_rope_head_dim;
  shape.interleaved = true;
  return shape;
}

// YaRN increases the scores of attention: here by way of the queries (`softmax_scale` of
// DeepSeek-V2's modeling_deepseek.py).
void OpRunner::scale_queries(void* rows, Queue queue) {
  const auto& scaling = model_.rope_scaling;
  if (!scaling || scaling->kind != RopeScalingKind::Yarn || scaling->mscale_all_dim == 0.0) return;
  const double magnitude = yarn_magnitude(*scaling, scaling->mscale_all_dim);
  kernels_.scale_columns(shape_.tokens, query_width(), magnitude * magnitude, rows,
                         query_width() + key_value_width(), queue);
}

OpRunner::RotaryKeys OpRunner::rotary_keys(const BoundOp& bound) {
  const std::int64_t rotary = model_.attention.qk_rope_head_dim;
  const TensorRef ref = bound.op->reads[2];
  // They lie behind the bottleneck, unless the ranks have gathered them.
  if (!shape_.gathers_sequence) {
    const std::int64_t width = row_width(ref, shape_.tokens);
    return {at(bound.read(2), width - rotary), width};
  }
  std::shared_ptr<void>& kept = kept_rotary_keys_[{bound.call->layer, bound.call->microbatch}];
  const bool gathered = program_.tensors[ref.tensor].name != "attention.kv_down.out";
  if (!gathered) return {kept.get(), rotary};
  if (program_.plan.recompute_modules.contains(RecomputeModule::MlaUpProjection)) {
    const std::size_t bytes = bytes_of_rows(shape_.tokens, rotary);
    if (!kept) kept = kernels_.allocate(bytes);
    kernels_.copy(kept.get(), bound.read(2), bytes, bound.queue);
  }
  return {bound.read(2), rotary};
}

void OpRunner::latent_rope(const BoundOp& bound) {
  if (is_backward(bound.op->phase)) return latent_rope_backward(bound);
  const AttentionSpec& attention = model_.attention;
  const std::int64_t nope = attention.qk_nope_head_dim, rotary = attention.qk_rope_head_dim;
  const std::int64_t values = attention.v_head_dim, heads = shape_.heads;
  const std::int64_t width = query_width() + key_value_width();
  const auto copy = [&](std::int64_t columns, const void* from, std::int64_t from_width,
                        std::int64_t to) {
    kernels_.copy_columns(shape_.tokens, columns, from, from_width, at(bound.write(0), to), width,
                          bound.queue);
  };
  const RotaryKeys rotary_keys = this->rotary_keys(bound);
  const std::int64_t first_value = query_width() + heads * (nope + rotary);
  for (std::int64_t head = 0; head < heads; ++head) {
    const std::int64_t from = column(0, head, nope + values);
    const std::int64_t key = column(query_width(), head, nope + rotary);
    copy(nope, at(bound.read(1), from), heads * (nope + values), key);
    copy(rotary, rotary_keys.first, rotary_keys.width, key + nope);
    copy(values, at(bound.read(1), from + nope), heads * (nope + values),
         column(first_value, head, values));
  }
  kernels_.rope(latent_rope_shape(), false, at(bound.write(0), nope), bound.queue);
  scale_queries(bound.write(0), bound.queue);
}

void OpRunner::latent_rope_backward(const BoundOp& bound) {
  const AttentionSpec& attention = model_.attention;
  const std::int64_t nope = attention.qk_nope_head_dim, rotary = attention.qk_rope_head_dim;
  const std::int64_t values = attention.v_head_dim, heads = shape_.heads;
  const std::int64_t width = query_width() + key_value_width();
  void* gradient = bound.write(1);
  kernels_.rope(latent_rope_shape(), true, at(gradient, nope), bound.queue);
  scale_queries(gradient, bound.queue);
  const bool alone = program_.plan.tp == 1;
  void* of_rotary_key = alone ? at(gradient, query_width() + nope) : bound.write(2);
  const std::int64_t key_width = alone ? width : rotary;
  const std::int64_t first_value = query_width() + heads * (nope + rotary);
  for (std::int64_t head = 0; head < heads; ++head) {
    const std::int64_t to = column(0, head, nope + values);
    const std::int64_t key = column(query_width(), head, nope + rotary);
    kernels_.copy_columns(shape_.tokens, nope, at(gradient, key), width, at(bound.write(0), to),
                          heads * (nope + values), bound.queue);
    kernels_.copy_columns(shape_.tokens, values, at(gradient, column(first_value, head, values)),
                          width, at(bound.write(0), to + nope), heads * (nope + values),
                          bound.queue);
    const void* own = at(gradient, key + nope);
    if (head > 0) {
      kernels_.add_columns(shape_.tokens, rotary, own, width, of_rotary_key, key_width,
                           bound.queue);
    } else if (!alone) {
      kernels_.copy_columns(shape_.tokens, rotary, own, width, of_rotary_key, key_width,
                            bound.queue);
    }
  }
}

// The ranks gather the ends of the rows that they have projected down.
void OpRunner::gather_rotary_key(const BoundOp& bound, Communicator& group) {
  const std::int64_t rows = shape_.residual_tokens, rotary = model_.attention.qk_rope_head_dim;
  const std::int64_t width = row_width(bound.op->reads.front(), rows);
  const auto each = static_cast<std::size_t>(rows * rotary);
  void* own = at(bound.write(0), group.rank() * rows * rotary);
  kernels_.copy_columns(rows, rotary, at(bound.read(0), width - rotary), width, own, rotary,
                        bound.queue);
  group.all_gather(own, bound.write(0), each, kernels_.element(), bound.queue);
}

}  // namespace shardwright::executor
