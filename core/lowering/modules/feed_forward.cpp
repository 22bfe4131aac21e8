// The dense feed-forward block: up (and gate), activation function, down.
#include "core/lowering/modules/modules.hpp"

namespace shardwright {
namespace {

// Bias, activation function, product with the gate.
constexpr std::int64_t kUnfusedActivationKernels = 3;

double elements_of(const BlockWriter& w, std::int64_t width) {
  return static_cast<double>(w.shape.tokens * width);
}

}  // namespace

std::vector<std::string> up_parameters(const BlockWriter& w, const std::string& prefix) {
  if (!w.model.mlp.gated) return w.of_layer({prefix + ".up_proj"});
  return w.of_layer({prefix + ".gate_proj", prefix + ".up_proj"});
}

std::vector<std::int64_t> up_widths(const BlockWriter& w, std::int64_t width) {
  if (!w.model.mlp.gated) return {};
  return {width, width};
}

void write_activation_forward(const BlockWriter& w, const std::string& name, double elements,
                              TensorRef up, TensorRef out) {
  const double gates = w.model.mlp.gated ? 2.0 : 1.0;
  w.memory_op(name, OpKind::Activation, gates * elements, elements, {up}, {out},
              w.stack.fusion.activation ? 1 : kUnfusedActivationKernels);
}

void write_activation_backward(const BlockWriter& w, const std::string& name, double elements,
                               TensorRef up, TensorRef out_gradient, TensorRef up_gradient) {
  const double gates = w.model.mlp.gated ? 2.0 : 1.0;
  w.memory_op(name + ".backward", OpKind::Activation, (gates + 1.0) * elements, gates * elements,
              {up, out_gradient}, {up_gradient},
              w.stack.fusion.activation ? 1 : kUnfusedActivationKernels);
}

FeedForward feed_forward(const BlockWriter& w, const std::string& name,
                         const std::string& parameters, std::int64_t ffn_hidden, TensorRef in) {
  const std::int64_t width = ffn_hidden / w.plan.tp;
  const std::int64_t up_width = width * (w.model.mlp.gated ? 2 : 1);
  const TensorRef up = w.activation(name + ".up.out", elements_of(w, up_width));
  const TensorRef activated = w.gemm_input(name + ".activation.out", elements_of(w, width));
  return {name,
          {name + ".up", LinearSplit::Column, w.shape.hidden, up_width, in, up,
           up_parameters(w, parameters), up_widths(w, width)},
          {name + ".down",
           LinearSplit::Row,
           width,
           w.shape.hidden,
           activated,
           {},
           w.of_layer({parameters + ".down_proj"})}};
}

void write_up_forward(const BlockWriter& w, const FeedForward& block) {
  write_linear_forward(w, block.up);
  write_activation_forward(w, block.name + ".activation", elements_of(w, block.down.in),
                           block.up.output, block.down.input);
}

void write_activation_again(const BlockWriter& w, const FeedForward& block) {
  const double elements = elements_of(w, block.down.in);
  write_activation_forward(w, block.name + ".activation", elements, block.up.output,
                           block.down.input);
  write_cast(w, block.down.name + ".input", elements, block.down.input);
}

void write_down_forward(const BlockWriter& w, FeedForward block, TensorRef out) {
  block.down.output = out;
  write_linear_forward(w, block.down);
}

void write_down_backward(const BlockWriter& w, const FeedForward& block, TensorRef out_gradient) {
  const double elements = elements_of(w, block.down.in);
  const TensorRef activated_gradient = w.temporary(block.name + ".activation.gradient", elements);
  const TensorRef up_gradient =
      w.temporary(block.name + ".up.gradient", elements_of(w, block.up.out));
  write_linear_backward(w, block.down, out_gradient, activated_gradient);
  write_activation_backward(w, block.name + ".activation", elements, block.up.output,
                            activated_gradient, up_gradient);
}

void write_up_backward(const BlockWriter& w, const FeedForward& block, TensorRef in_gradient) {
  const TensorRef up_gradient =
      w.temporary(block.name + ".up.gradient", elements_of(w, block.up.out));
  write_linear_backward(w, block.up, up_gradient, in_gradient);
}

}  // namespace shardwright
