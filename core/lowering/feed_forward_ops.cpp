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

void LayerWriter::dense_forward(const std::string& name, std::int64_t ffn, TensorRef in,
                                TensorRef out) {
  const std::int64_t width = ffn / plan_.tp;
  const std::int64_t up_width = width * (model_.mlp.gated ? 2 : 1);
  const auto rows = static_cast<double>(shape_.tokens);
  const TensorRef up = activation(name + ".up.out", rows * static_cast<double>(up_width));
  const TensorRef activated =
      gemm_input(name + ".activation.out", rows * static_cast<double>(width));
  linear_forward({name + ".up", LinearSplit::Column, shape_.hidden, up_width, in, up});
  activation_forward(name + ".activation", rows, width, up, activated);
  linear_forward({name + ".down", LinearSplit::Row, width, shape_.hidden, activated, out});
}

void LayerWriter::dense_backward(const std::string& name, std::int64_t ffn, TensorRef in,
                                 TensorRef out_gradient, TensorRef in_gradient) {
  const std::int64_t width = ffn / plan_.tp;
  const std::int64_t up_width = width * (model_.mlp.gated ? 2 : 1);
  const auto rows = static_cast<double>(shape_.tokens);
  const TensorRef up = activation(name + ".up.out", rows * static_cast<double>(up_width));
  const TensorRef activated =
      gemm_input(name + ".activation.out", rows * static_cast<double>(width));
  const TensorRef activated_gradient =
      temporary(name + ".activation.gradient", rows * static_cast<double>(width));
  const TensorRef up_gradient =
      temporary(name + ".up.gradient", rows * static_cast<double>(up_width));
  linear_backward({name + ".down", LinearSplit::Row, width, shape_.hidden, activated, {}},
                  out_gradient, activated_gradient);
  activation_backward(name + ".activation", rows, width, up, activated_gradient, up_gradient);
  linear_backward({name + ".up", LinearSplit::Column, shape_.hidden, up_width, in, up}, up_gradient,
                  in_gradient);
}

}  // namespace shardwright
