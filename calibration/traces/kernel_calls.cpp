#include "calibration/traces/kernel_calls.hpp"

#include <utility>

#include "calibration/traces/gemm_timings.hpp"
#include "calibration/traces/trace_report.hpp"

namespace shardwright::calibration {
namespace {

bool contains_any(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words)
    if (text.find(word) != std::string_view::npos) return true;
  return false;
}

bool is_backward(std::string_view name) {
  return contains_any(name, {"bwd", "backward", "bprop", "dgrad", "wgrad", "dot_do_o"});
}

// Kernels that stand before the main one of a call, and behind it.
bool leads(std::string_view name) {
  return contains_any(name, {"preprocess", "prepare", "dot_do_o"});
}
bool follows(std::string_view name) {
  return contains_any(
      name, {"splitk", "execute_split_k", "postprocess", "convert", "epilogue", "combine"});
}

struct KindOfWord {
  std::string_view word;
  OpKind kind;
};

// Norms come last of what is fused with other things, and additions last of all.
constexpr KindOfWord kWords[] = {
    {"cross_entropy", OpKind::Loss},
    {"crossentropy", OpKind::Loss},
    {"nll_loss", OpKind::Loss},
    {"log_softmax", OpKind::Loss},
    {"logsoftmax", OpKind::Loss},
    {"l2norm", OpKind::GradientNorm},
    {"vector_norm", OpKind::GradientNorm},
    {"multi_tensor_apply", OpKind::Optimizer},
    {"adam", OpKind::Optimizer},
    {"optimizer", OpKind::Optimizer},
    {"rotary", OpKind::Rope},
    {"rope", OpKind::Rope},
    {"silu", OpKind::Activation},
    {"swiglu", OpKind::Activation},
    {"gelu", OpKind::Activation},
    {"relu", OpKind::Activation},
    {"topk", OpKind::Router},
    {"permute_tokens", OpKind::Permute},
    {"moe_permute", OpKind::Permute},
    {"embedding", OpKind::Embedding},
    {"indexselect", OpKind::Embedding},
    {"rms_norm", OpKind::Norm},
    {"rmsnorm", OpKind::Norm},
    {"layer_norm", OpKind::Norm},
    {"layernorm", OpKind::Norm},
    {"rsqrt", OpKind::Norm},
    {"softmax", OpKind::Softmax},
    {"dropout", OpKind::Dropout},
    {"quantize", OpKind::Cast},
    {"_to_copy", OpKind::Cast},
    {"cast", OpKind::Cast},
    {"add", OpKind::Residual},
};

}  // namespace

bool is_of_backward_pass(const Trace& trace, const DeviceActivity& activity) {
  return is_backward(lower_case(trace.names[activity.name])) ||
         (activity.op != kNoIndex && is_backward(lower_case(trace.names[activity.op])));
}

std::optional<OpKind> memory_bound_kind(std::string_view kernel, std::string_view op) {
  const std::string name = lower_case(kernel), of_op = lower_case(op);
  for (const auto& [word, kind] : kWords)
    if (name.find(word) != std::string::npos || of_op.find(word) != std::string::npos) return kind;
  return std::nullopt;
}

std::optional<MeasuredKernel> KernelCalls::product(const DeviceActivity& activity) {
  if (activity.shapes == kNoIndex) return std::nullopt;
  const auto [known, is_new] =
      products_.try_emplace({activity.shapes, activity.op, activity.name}, std::nullopt);
  if (is_new) known->second = product_of(*trace_, activity);
  return known->second;
}

bool KernelCalls::continues(const KernelCall& call, const DeviceActivity& next) const {
  const bool has_parts =
      next.category == KernelCategory::Gemm || next.category == KernelCategory::Attention;
  if (!has_parts || next.category != call.category) return false;
  if (next.op_call != kNoIndex && call.main->op_call != kNoIndex)
    return next.op_call == call.main->op_call;
  const std::string name = lower_case(trace_->names[next.name]);
  const std::string before = lower_case(trace_->names[call.activities.back()->name]);
  return is_backward(name) == call.backward && (follows(name) || leads(before));
}

std::vector<KernelCall> KernelCalls::of(const Activities& activities) {
  std::vector<KernelCall> calls;
  for (const DeviceActivity* each : activities) {
    if (calls.empty() || !continues(calls.back(), *each)) {
      KernelCall& call = calls.emplace_back();
      call.category = each->category;
      call.main = each;
      call.backward = is_of_backward_pass(*trace_, *each);
      if (each->category == KernelCategory::Collective) {
        call.collective = kind_of_collective(*trace_, *each);
        if (each->collective != kNoIndex)
          call.arguments = &trace_->collectives[static_cast<std::size_t>(each->collective)];
      }
    }
    KernelCall& call = calls.back();
    call.activities.push_back(each);
    call.time += from_ns(each->duration);
    if (each->duration > call.main->duration) call.main = each;
    if (!call.product && each->category == KernelCategory::Gemm) call.product = product(*each);
  }
  return calls;
}

}  // namespace shardwright::calibration
