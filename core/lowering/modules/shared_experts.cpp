// Shared experts: a dense feed-forward block that every token passes, with a learned gate on its
// output if the model has one (Qwen2-MoE).
#include "core/lowering/modules/modules.hpp"

namespace shardwright {
namespace {

FeedForward shared_block(const BlockWriter& w, TensorRef in) {
  return feed_forward(w, "shared_experts", "moe.shared_experts", w.model.moe->shared_expert_ffn,
                      in);
}

bool has_gate(const BlockWriter& w) {
  return w.model.moe->shared_expert_gate;
}

std::vector<std::string> gate_parameters(const BlockWriter& w) {
  return w.of_layer({"moe.shared_expert_gate"});
}

TensorRef gate_value(const BlockWriter& w) {
  return w.activation("shared_experts.gate.out", static_cast<double>(w.shape.residual_tokens));
}

TensorRef gate_gradient(const BlockWriter& w) {
  return w.temporary("shared_experts.gate.gradient", static_cast<double>(w.shape.residual_tokens));
}

// The output before the gate, which the gradient of the gate needs.
TensorRef ungated_output(const BlockWriter& w) {
  return w.activation("shared_experts.ungated", w.shape.residual_elements());
}

}  // namespace

void write_shared_up_forward(const BlockWriter& w, TensorRef in) {
  if (has_gate(w)) {
    const GemmWork work{.m = w.shape.residual_tokens, .n = 1, .k = w.shape.hidden};
    w.apply(w.gemm("shared_experts.gate", work, {in}, {gate_value(w)}), gate_parameters(w));
  }
  write_up_forward(w, shared_block(w, in));
}

TensorRef write_shared_down_forward(const BlockWriter& w, TensorRef in) {
  const double elements = w.shape.residual_elements();
  const auto output = [&] { return w.temporary("shared_experts.out", elements); };
  if (!has_gate(w)) {
    write_down_forward(w, shared_block(w, in), output());
    return output();
  }
  write_down_forward(w, shared_block(w, in), ungated_output(w));
  w.memory_op("shared_experts.gate.product", OpKind::Activation, elements, elements,
              {ungated_output(w), gate_value(w)}, {output()});
  return output();
}

void write_shared_down_backward(const BlockWriter& w, TensorRef in, TensorRef out_gradient) {
  if (has_gate(w)) {
    const double elements = w.shape.residual_elements();
    const TensorRef ungated_gradient = w.temporary("shared_experts.ungated.gradient", elements);
    w.memory_op("shared_experts.gate.product.backward", OpKind::Activation, 2.0 * elements,
                elements, {out_gradient, ungated_output(w), gate_value(w)},
                {ungated_gradient, gate_gradient(w)});
    out_gradient = ungated_gradient;
  }
  write_down_backward(w, shared_block(w, in), out_gradient);
}

TensorRef write_shared_up_backward(const BlockWriter& w, TensorRef in) {
  const TensorRef in_gradient = w.temporary("shared_experts.gradient", w.shape.residual_elements());
  write_up_backward(w, shared_block(w, in), in_gradient);
  if (!has_gate(w)) return in_gradient;
  const std::int64_t rows = w.shape.residual_tokens, hidden = w.shape.hidden;
  w.apply(w.gemm("shared_experts.gate.dgrad", {.m = rows, .n = hidden, .k = 1},
                 {gate_gradient(w), in_gradient}, {in_gradient}),
          gate_parameters(w));
  if (w.freezes()) return in_gradient;
  w.weight_gradient("shared_experts.gate.wgrad", {.m = 1, .n = hidden, .k = rows},
                    {gate_gradient(w), in}, gate_parameters(w));
  return in_gradient;
}

}  // namespace shardwright
