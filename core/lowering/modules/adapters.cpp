// Low-rank adapters beside frozen projections (LoRA, arXiv 2106.09685): y = W x + (alpha / rank) B
// A x.
//
// Each adapter is two products of its own, as in PEFT, torchtune, torchtitan and Megatron Bridge,
// and two kernels more: one scales its output, one adds it. Its inner product A x is kept for the
// gradient of B, and the projection's input for that of A.
#include "core/spec/adapters.hpp"

#include "core/lowering/modules/modules.hpp"

namespace shardwright {
namespace {

constexpr std::int64_t kScaleAndAdd = 2;

struct Adapter {
  // "attention.qkv.q_proj", and the name of its weights without ".lora_a".
  std::string name, weights;
  std::int64_t width = 0;
  TensorRef inner, scaled_gradient, inner_gradient;
};

std::vector<Adapter> adapters_of(const BlockWriter& w, const Adapted& adapted) {
  std::vector<Adapter> adapters;
  if (!w.freezes()) return adapters;
  const Linear& projection = adapted.projection;
  const auto rows = static_cast<double>(adapted.rows);
  const double inner = rows * static_cast<double>(w.plan.lora->rank);
  for (std::size_t i = 0; i < projection.parameters.size(); ++i) {
    const std::string& parameter = projection.parameters[i];
    if (!is_adapted(*w.plan.lora, parameter)) continue;
    const std::string weights = adapter_of(*w.plan.lora, parameter);
    if (!adapters.empty() && adapters.back().weights == weights) continue;
    const bool whole = projection.widths.empty() || w.plan.lora->joint;
    const std::int64_t width = whole ? projection.out : projection.widths[i];
    const std::string name = projection.name + weights.substr(weights.rfind('.'));
    const double elements = rows * static_cast<double>(width);
    adapters.push_back({name, weights, width, w.activation(name + ".lora_a.out", inner),
                        w.temporary(name + ".scaled_gradient", elements),
                        w.temporary(name + ".lora_a.gradient", inner)});
  }
  return adapters;
}

BlockWriter in_16_bits(BlockWriter w) {
  if (casts_operands(w.precision)) w.precision = Precision::Bf16;
  return w;
}

}  // namespace

bool has_adapters(const BlockWriter& w, const std::vector<std::string>& parameters) {
  if (!w.freezes()) return false;
  for (const std::string& parameter : parameters) {
    if (is_adapted(*w.plan.lora, parameter)) return true;
  }
  return false;
}

void write_adapters_forward(const BlockWriter& writer, const Adapted& adapted, TensorRef input,
                            TensorRef product, TensorRef output) {
  const BlockWriter w = in_16_bits(writer);
  const auto& [projection, rows, experts] = adapted;
  const std::int64_t rank = w.plan.lora->rank;
  TensorRef sum = product;
  for (const Adapter& adapter : adapters_of(w, adapted)) {
    const double elements = static_cast<double>(rows * adapter.width);
    const TensorRef added = w.temporary(adapter.name + ".lora_b.out", elements);
    w.apply(w.gemm(adapter.name + ".lora_a",
                   {.m = rows, .n = rank, .k = projection.in, .groups = experts}, {input},
                   {adapter.inner}),
            {adapter.weights + ".lora_a"});
    w.apply(w.gemm(adapter.name + ".lora_b",
                   {.m = rows, .n = adapter.width, .k = rank, .groups = experts}, {adapter.inner},
                   {added}),
            {adapter.weights + ".lora_b"});
    w.memory_op(adapter.name + ".lora_sum", OpKind::Residual, 1.5 * elements, elements,
                {added, sum}, {output}, kScaleAndAdd);
    sum = output;
  }
}

void write_adapters_backward(const BlockWriter& writer, const Adapted& adapted,
                             TensorRef output_gradient, TensorRef input_gradient) {
  const BlockWriter w = in_16_bits(writer);
  const auto& [projection, rows, experts] = adapted;
  const std::int64_t rank = w.plan.lora->rank;
  const auto in_elements = static_cast<double>(rows * projection.in);
  for (const Adapter& adapter : adapters_of(w, adapted)) {
    const double elements = static_cast<double>(rows * adapter.width);
    w.memory_op(adapter.name + ".lora_scale", OpKind::Residual, elements, elements,
                {output_gradient}, {adapter.scaled_gradient});
    w.apply(w.gemm(adapter.name + ".lora_b.dgrad",
                   {.m = rows, .n = rank, .k = adapter.width, .groups = experts},
                   {adapter.scaled_gradient}, {adapter.inner_gradient}),
            {adapter.weights + ".lora_b"});
    const TensorRef added = w.temporary(adapter.name + ".lora_a.dgrad", in_elements);
    w.apply(w.gemm(adapter.name + ".lora_a.dgrad",
                   {.m = rows, .n = projection.in, .k = rank, .groups = experts},
                   {adapter.inner_gradient}, {added}),
            {adapter.weights + ".lora_a"});
    w.memory_op(adapter.name + ".lora_gradient_sum", OpKind::Residual, 2.0 * in_elements,
                in_elements, {added, input_gradient}, {input_gradient});
  }
}

void write_adapter_gradients(const BlockWriter& writer, const Adapted& adapted, TensorRef input) {
  const BlockWriter w = in_16_bits(writer);
  const auto& [projection, rows, experts] = adapted;
  const std::int64_t rank = w.plan.lora->rank;
  const bool shares = experts > 1;
  for (const Adapter& adapter : adapters_of(w, adapted)) {
    w.weight_gradient(
        adapter.name + ".lora_b.wgrad",
        {.m = adapter.width, .n = rank, .k = rows, .groups = experts, .groups_share_k = shares},
        {adapter.scaled_gradient, adapter.inner}, {adapter.weights + ".lora_b"});
    w.weight_gradient(
        adapter.name + ".lora_a.wgrad",
        {.m = rank, .n = projection.in, .k = rows, .groups = experts, .groups_share_k = shares},
        {adapter.inner_gradient, input}, {adapter.weights + ".lora_a"});
  }
}

std::vector<TensorRef> write_dequantization(const BlockWriter& w, const std::string& name,
                                            double elements,
                                            const std::vector<std::string>& parameters) {
  if (!w.freezes() || !is_quantized(*w.plan.lora, parameters.front())) return {};
  const TensorRef weights = w.temporary(name + ".weights", elements);
  w.apply(w.memory_op(name + ".dequantize", OpKind::Cast, elements * kNf4Bytes / w.shape.element,
                      elements, {}, {weights}),
          {});
  return {weights};
}

}  // namespace shardwright
