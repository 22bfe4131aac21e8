// The dense feed-forward block: up (and gate), activation, down.
#include "core/lowering/layer_writer.hpp"

namespace shardwright {
namespace {

constexpr std::int64_t kUnfusedActivationKernels = 3;  // bias, activation, product with the gate

}  // namespace

void LayerWriter::activation_forward(const std::string& name, double rows, std::int64_t ffn,
                                     TensorRef up, TensorRef out) {
  const double elements = rows * static_cast<double>(ffn);
  const double gates = model_.mlp.gated ? 2.0 : 1.0;
  memory_op(name, OpKind::Activation, phase_, gates * elements, elements, {up}, {out},
            stack_.fused_activation ? 1 : kUnfusedActivationKernels);
}

void LayerWriter::activation_backward(const std::string& name, double rows, std::int64_t ffn,
                                      TensorRef up, TensorRef out_gradient, TensorRef up_gradient) {
  const double elements = rows * static_cast<double>(ffn);
  const double gates = model_.mlp.gated ? 2.0 : 1.0;
  memory_op(name + ".backward", OpKind::Activation, Phase::BackwardInput, (gates + 1.0) * elements,
            gates * elements, {up, out_gradient}, {up_gradient},
            stack_.fused_activation ? 1 : kUnfusedActivationKernels);
}

LayerWriter::DenseShape LayerWriter::dense_shape(const std::string& name, std::int64_t ffn) {
  DenseShape dense;
  dense.name = name;
  dense.width = ffn / plan_.tp;
  dense.up_width = dense.width * (model_.mlp.gated ? 2 : 1);
  const auto rows = static_cast<double>(shape_.tokens);
  dense.up = activation(name + ".up.out", rows * static_cast<double>(dense.up_width));
  dense.activated = gemm_input(name + ".activation.out", rows * static_cast<double>(dense.width));
  return dense;
}

void LayerWriter::dense_up_forward(const DenseShape& dense, TensorRef in) {
  linear_forward(
      {dense.name + ".up", LinearSplit::Column, shape_.hidden, dense.up_width, in, dense.up});
  activation_forward(dense.name + ".activation", static_cast<double>(shape_.tokens), dense.width,
                     dense.up, dense.activated);
}

void LayerWriter::dense_down_forward(const DenseShape& dense, TensorRef out) {
  linear_forward(
      {dense.name + ".down", LinearSplit::Row, dense.width, shape_.hidden, dense.activated, out});
}

void LayerWriter::dense_down_backward(const DenseShape& dense, TensorRef out_gradient) {
  const auto rows = static_cast<double>(shape_.tokens);
  const TensorRef activated_gradient =
      temporary(dense.name + ".activation.gradient", rows * static_cast<double>(dense.width));
  const TensorRef up_gradient =
      temporary(dense.name + ".up.gradient", rows * static_cast<double>(dense.up_width));
  linear_backward(
      {dense.name + ".down", LinearSplit::Row, dense.width, shape_.hidden, dense.activated, {}},
      out_gradient, activated_gradient);
  activation_backward(dense.name + ".activation", rows, dense.width, dense.up, activated_gradient,
                      up_gradient);
}

void LayerWriter::dense_up_backward(const DenseShape& dense, TensorRef in, TensorRef in_gradient) {
  const TensorRef up_gradient =
      temporary(dense.name + ".up.gradient",
                static_cast<double>(shape_.tokens) * static_cast<double>(dense.up_width));
  linear_backward(
      {dense.name + ".up", LinearSplit::Column, shape_.hidden, dense.up_width, in, dense.up},
      up_gradient, in_gradient);
}

}  // namespace shardwright
