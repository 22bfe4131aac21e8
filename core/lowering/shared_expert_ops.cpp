// Shared experts: a dense feed-forward block that every token passes, with a learned gate on its
// output where the model has one (Qwen2-MoE).
//
// Where stack and plan overlap expert parallelism, their first half runs while tokens travel to the
// routed experts, the second while these come back, as Megatron Core's shared experts do
// (megatron/core/transformer/moe/shared_experts.py); otherwise before the tokens leave.
#include "core/lowering/layer_writer.hpp"

namespace shardwright {

bool LayerWriter::overlaps_exchange() const {
  return has_shared_experts(model_) && stack_.overlap_ep && plan_.overlap.expert_parallel;
}

LayerWriter::DenseShape LayerWriter::shared_shape() {
  return dense_shape("shared_experts", model_.moe->shared_expert_ffn);
}

TensorRef LayerWriter::shared_output() {
  return temporary("shared_experts.out",
                   static_cast<double>(shape_.residual_tokens * shape_.hidden));
}

TensorRef LayerWriter::shared_input_gradient() {
  return temporary("shared_experts.gradient",
                   static_cast<double>(shape_.residual_tokens * shape_.hidden));
}

TensorRef LayerWriter::gate_value() {
  return activation("shared_experts.gate.out", static_cast<double>(shape_.residual_tokens));
}

// The gate's gradient needs what it multiplied.
TensorRef LayerWriter::ungated_output() {
  return activation("shared_experts.ungated",
                    static_cast<double>(shape_.residual_tokens * shape_.hidden));
}

void LayerWriter::shared_up_forward(TensorRef in) {
  if (model_.moe->shared_expert_gate) {
    gemm("shared_experts.gate", phase_, {.m = shape_.residual_tokens, .n = 1, .k = shape_.hidden},
         {in}, {gate_value()});
    read_parameters(ops_.back());
  }
  dense_up_forward(shared_shape(), in);
}

void LayerWriter::shared_down_forward() {
  if (!model_.moe->shared_expert_gate) {
    dense_down_forward(shared_shape(), shared_output());
    return;
  }
  dense_down_forward(shared_shape(), ungated_output());
  const auto elements = static_cast<double>(shape_.residual_tokens * shape_.hidden);
  memory_op("shared_experts.gate.product", OpKind::Activation, phase_, elements, elements,
            {ungated_output(), gate_value()}, {shared_output()});
}

void LayerWriter::shared_down_backward(TensorRef out_gradient) {
  if (!model_.moe->shared_expert_gate) {
    dense_down_backward(shared_shape(), out_gradient);
    return;
  }
  const auto elements = static_cast<double>(shape_.residual_tokens * shape_.hidden);
  const TensorRef ungated_gradient = temporary("shared_experts.ungated.gradient", elements);
  memory_op("shared_experts.gate.product.backward", OpKind::Activation, Phase::BackwardInput,
            2.0 * elements, elements, {out_gradient, ungated_output(), gate_value()},
            {ungated_gradient, gate_gradient()});
  dense_down_backward(shared_shape(), ungated_gradient);
}

void LayerWriter::shared_up_backward(TensorRef in) {
  dense_up_backward(shared_shape(), in, shared_input_gradient());
  if (!model_.moe->shared_expert_gate) return;
  gemm("shared_experts.gate.dgrad", Phase::BackwardInput,
       {.m = shape_.residual_tokens, .n = shape_.hidden, .k = 1},
       {gate_gradient(), shared_input_gradient()}, {shared_input_gradient()});
  read_parameters(ops_.back());
  weight_gradient_of_replicated("shared_experts.gate.wgrad", 1, gate_gradient(), in);
}

TensorRef LayerWriter::gate_gradient() {
  return temporary("shared_experts.gate.gradient", static_cast<double>(shape_.residual_tokens));
}

}  // namespace shardwright
