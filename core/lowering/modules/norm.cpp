#include "core/lowering/modules/modules.hpp"

namespace shardwright {
namespace {

// A norm that is not one fused kernel, computed in fp32 as model code writes it. Its forward pass
// casts to fp32, squares, takes the mean, scales, casts back and multiplies by the weight. Its
// backward pass computes the gradients of these, where square and scale have two operands each.
// Bytes are those of an element of 2 bytes.
struct UnfusedNorm {
  double read_bytes, written_bytes;
  std::int64_t kernels;
};
constexpr UnfusedNorm kUnfusedForward{20.0, 16.0, 6}, kUnfusedBackward{52.0, 32.0, 11};
// Such a norm keeps, besides its input and output, the fp32 copy of the input and its normalised
// value for the backward pass.
constexpr double kKeptBytes = 8.0;

// Gives `op` the work of an unfused norm; returns what the forward pass keeps for the backward.
TensorRef make_unfused(const BlockWriter& w, const Norm& norm, const UnfusedNorm& cost, Op& op) {
  const double elements = w.shape.residual_elements();
  op.work = MemoryWork{Bytes(elements * cost.read_bytes), Bytes(elements * cost.written_bytes),
                       Flop(elements * 8.0), cost.kernels};
  return w.tensor(norm.name + ".intermediates", MemoryCategory::Activations, kKeptBytes * elements);
}

}  // namespace

void write_norm_forward(const BlockWriter& w, const Norm& norm, TensorRef in, TensorRef out) {
  const double elements = w.shape.residual_elements();
  Op& op = w.apply(w.memory_op(norm.name, OpKind::Norm, elements, elements, {in}, {out}),
                   {norm.parameter});
  if (!w.stack.fusion.norm) op.writes.push_back(make_unfused(w, norm, kUnfusedForward, op));
}

void write_norm_backward(const BlockWriter& w, const Norm& norm, TensorRef in,
                         const std::vector<TensorRef>& gradients, TensorRef in_gradient) {
  const double elements = w.shape.residual_elements();
  std::vector<TensorRef> reads = gradients;
  reads.push_back(in);
  Op& op = w.apply(
      w.memory_op(norm.name + ".backward", OpKind::Norm,
                  static_cast<double>(reads.size()) * elements, elements, reads, {in_gradient}),
      {norm.parameter});
  if (!w.stack.fusion.norm) op.reads.push_back(make_unfused(w, norm, kUnfusedBackward, op));
}

}  // namespace shardwright
