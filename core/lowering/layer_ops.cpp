// The frame of a transformer layer: norms, residual additions, and the order of attention and
// feed-forward.
#include "core/lowering/layer_writer.hpp"

namespace shardwright {
namespace {

// A norm that is not one fused kernel, in fp32 as model code writes it. Forward: cast to fp32,
// square, mean, scale, cast back, multiply by the weight; bytes read and written of an element of
// 2 bytes. Backward: the gradients of these, of which square and scale have two operands each.
constexpr std::int64_t kUnfusedNormKernels = 6, kUnfusedNormBackwardKernels = 11;
constexpr double kUnfusedNormReadBytes = 20.0, kUnfusedNormWrittenBytes = 16.0;
constexpr double kUnfusedNormBackwardReadBytes = 52.0, kUnfusedNormBackwardWrittenBytes = 32.0;
// What such a norm keeps of each element for the backward pass besides its input and output: the
// fp32 copy of the input and its normalised value.
constexpr double kUnfusedNormBytes = 8.0;
// Bias, dropout and residual addition where they are not one kernel.
constexpr std::int64_t kUnfusedResidualKernels = 3;

// The work of a norm that is not fused: bytes of a 2-byte element of which there are `elements`.
MemoryWork unfused_norm(double elements, double read, double written, std::int64_t kernels) {
  return {Bytes(elements * read), Bytes(elements * written), Flop(elements * 8.0), kernels};
}

}  // namespace

void LayerWriter::norm_forward(const std::string& name, TensorRef in, TensorRef out) {
  const auto elements = static_cast<double>(shape_.residual_tokens * shape_.hidden);
  memory_op(name, OpKind::Norm, phase_, elements, elements, {in}, {out});
  read_parameters(ops_.back());
  if (stack_.fused_norm) return;
  ops_.back().work =
      unfused_norm(elements, kUnfusedNormReadBytes, kUnfusedNormWrittenBytes, kUnfusedNormKernels);
  ops_.back().writes.push_back(norm_intermediates(name));
}

TensorRef LayerWriter::norm_intermediates(const std::string& name) {
  return bytes_tensor(
      name + ".intermediates", MemoryCategory::Activations,
      kUnfusedNormBytes * static_cast<double>(shape_.residual_tokens * shape_.hidden));
}

void LayerWriter::norm_backward(const std::string& name, TensorRef in,
                                const std::vector<TensorRef>& gradients, TensorRef in_gradient) {
  const auto elements = static_cast<double>(shape_.residual_tokens * shape_.hidden);
  std::vector<TensorRef> reads = gradients;
  reads.push_back(in);
  memory_op(name + ".backward", OpKind::Norm, Phase::BackwardInput,
            static_cast<double>(reads.size()) * elements, elements, reads, {in_gradient});
  read_parameters(ops_.back());
  if (stack_.fused_norm) return;
  ops_.back().work = unfused_norm(elements, kUnfusedNormBackwardReadBytes,
                                  kUnfusedNormBackwardWrittenBytes, kUnfusedNormBackwardKernels);
  ops_.back().reads.push_back(norm_intermediates(name));
}

// One byte an element.
TensorRef LayerWriter::dropout_mask(const std::string& name) {
  return bytes_tensor(name + ".dropout_mask", MemoryCategory::Activations,
                      static_cast<double>(shape_.residual_tokens * shape_.hidden));
}

void LayerWriter::residual_forward(const std::string& name, TensorRef branch, TensorRef skip,
                                   TensorRef out) {
  const auto elements = static_cast<double>(shape_.residual_tokens * shape_.hidden);
  std::vector<TensorRef> writes = {out};
  if (model_.dropout > 0.0 && stack_.dropout_mask_saved) {
    writes.push_back(dropout_mask(name));
  }
  const bool one_kernel = stack_.fused_dropout_add || model_.dropout == 0.0;
  memory_op(name, OpKind::Residual, phase_, 2.0 * elements, elements, {branch, skip}, writes,
            one_kernel ? 1 : kUnfusedResidualKernels);
}

void LayerWriter::residual_backward(const std::string& name, TensorRef out_gradient,
                                    TensorRef branch_gradient) {
  const auto elements = static_cast<double>(shape_.residual_tokens * shape_.hidden);
  std::vector<TensorRef> reads = {out_gradient};
  if (stack_.dropout_mask_saved) {
    reads.push_back(dropout_mask(name));
  }
  memory_op(name + ".backward", OpKind::Dropout, Phase::BackwardInput, 1.5 * elements, elements,
            reads, {branch_gradient});
}

void LayerWriter::forward(std::int64_t layer) {
  const auto elements = static_cast<double>(shape_.residual_tokens * shape_.hidden);
  const bool shared_norm = model_.norms_per_layer == 1;
  const TensorRef attention_in = gemm_input("attention.norm.out", elements);
  const TensorRef middle = model_.parallel_block ? input() : activation("hidden.middle", elements);
  const TensorRef ffn_in = shared_norm ? attention_in : gemm_input("ffn.norm.out", elements);

  norm_forward("attention.norm", input(), attention_in);
  TensorRef attention_out = branch_output("attention");
  attention_forward(layer, attention_out);
  attention_out = branch_forward("attention", attention_out);
  if (!model_.parallel_block)
    residual_forward("attention.residual", attention_out, input(), middle);

  if (!shared_norm) norm_forward("ffn.norm", middle, ffn_in);
  TensorRef ffn_out = branch_output("ffn");
  if (model_.is_sparse(layer)) {
    sparse_forward(ffn_in, ffn_out);
  } else {
    const DenseShape dense = dense_shape("ffn", model_.mlp.ffn_hidden);
    dense_up_forward(dense, ffn_in);
    dense_down_forward(dense, ffn_out);
  }
  ffn_out = branch_forward("ffn", ffn_out);
  TensorRef skip = middle;
  if (model_.parallel_block) {
    skip = temporary("attention.residual.out", elements);
    residual_forward("attention.residual", attention_out, input(), skip);
  }
  // Recomputation runs to the end of the layer, but nobody reads its output.
  residual_forward(
      "ffn.residual", ffn_out, skip,
      phase_ == Phase::Recompute ? temporary("hidden.recomputed", elements) : output());
}

TensorRef LayerWriter::branch_output(const std::string& branch) {
  const auto elements = static_cast<double>(shape_.residual_tokens * shape_.hidden);
  return model_.norms_per_layer == 4 ? activation(branch + ".post_norm.in", elements)
                                     : temporary(branch + ".branch", elements);
}

TensorRef LayerWriter::branch_forward(const std::string& branch, TensorRef out) {
  if (model_.norms_per_layer != 4) return out;
  const TensorRef normed =
      temporary(branch + ".branch", static_cast<double>(shape_.residual_tokens * shape_.hidden));
  norm_forward(branch + ".post_norm", out, normed);
  return normed;
}

void LayerWriter::backward(std::int64_t layer) {
  const auto elements = static_cast<double>(shape_.residual_tokens * shape_.hidden);
  const bool shared_norm = model_.norms_per_layer == 1;
  const TensorRef attention_in = gemm_input("attention.norm.out", elements);
  const TensorRef attention_in_gradient = temporary("attention.norm.out.gradient", elements);
  const TensorRef middle = model_.parallel_block ? input() : activation("hidden.middle", elements);
  const TensorRef ffn_in = shared_norm ? attention_in : gemm_input("ffn.norm.out", elements);
  const TensorRef ffn_in_gradient = temporary("ffn.norm.out.gradient", elements);

  const TensorRef ffn_gradient = branch_backward("ffn", output_gradient());
  if (model_.is_sparse(layer)) {
    sparse_backward(ffn_in, ffn_gradient, ffn_in_gradient);
  } else {
    const DenseShape dense = dense_shape("ffn", model_.mlp.ffn_hidden);
    dense_down_backward(dense, ffn_gradient);
    dense_up_backward(dense, ffn_in, ffn_in_gradient);
  }
  // The gradient that goes around the attention block, and what its norm adds up.
  TensorRef around = output_gradient();
  std::vector<TensorRef> sum = {attention_in_gradient};
  if (shared_norm) {
    sum.push_back(ffn_in_gradient);
  } else {
    const TensorRef middle_gradient = temporary("hidden.middle.gradient", elements);
    norm_backward("ffn.norm", middle, {ffn_in_gradient, output_gradient()}, middle_gradient);
    around = middle_gradient;
  }
  sum.push_back(around);
  attention_backward(
      layer, branch_backward("attention", model_.parallel_block ? output_gradient() : around));
  norm_backward("attention.norm", input(), sum, input_gradient());
}

TensorRef LayerWriter::branch_backward(const std::string& branch, TensorRef gradient) {
  const auto elements = static_cast<double>(shape_.residual_tokens * shape_.hidden);
  if (model_.dropout > 0.0) {
    const TensorRef dropped = temporary(branch + ".branch.gradient", elements);
    residual_backward(branch + ".residual", gradient, dropped);
    gradient = dropped;
  }
  if (model_.norms_per_layer == 4) {
    const TensorRef normed = temporary(branch + ".post_norm.gradient", elements);
    norm_backward(branch + ".post_norm", activation(branch + ".post_norm.in", elements), {gradient},
                  normed);
    gradient = normed;
  }
  return gradient;
}

}  // namespace shardwright
