#include "sim/cost/kernel_cost.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "core/base/error.hpp"
#include "sim/cost/attention_cost.hpp"
#include "sim/cost/curve_cost.hpp"
#include "sim/cost/gemm_cost.hpp"
#include "sim/cost/measured_kernels.hpp"
#include "sim/cost/memory_cost.hpp"

namespace shardwright::sim {

namespace {

// The shapes that the formulas were fitted on.
constexpr double kLeastEdge = 64.0, kLeastDepth = 256.0, kLargestEdge = 131'072.0;
constexpr std::int64_t kLeastTokens = 512, kMostTokens = 131'072;

bool is_fitted_shape(const GemmWork& work) {
  const auto groups = static_cast<double>(work.groups);
  const double rows = static_cast<double>(work.m) / (work.groups_share_k ? 1.0 : groups);
  const double depth = static_cast<double>(work.k) / (work.groups_share_k ? groups : 1.0);
  const auto columns = static_cast<double>(work.n);
  return std::min(rows, columns) >= kLeastEdge && depth >= kLeastDepth &&
         std::max({rows, columns, depth}) <= kLargestEdge;
}

bool is_fitted_shape(const AttentionWork& work) {
  return std::min(work.q_tokens, work.kv_tokens) >= kLeastTokens &&
         std::max(work.q_tokens, work.kv_tokens) <= kMostTokens;
}

CostBasis basis_of(const Work& work, const AcceleratorSpec& accelerator) {
  bool fitted = true;
  if (const auto* gemm = std::get_if<GemmWork>(&work))
    fitted = accelerator.efficiency.matrix_main_loop > 0.0 && is_fitted_shape(*gemm);
  if (const auto* attention = std::get_if<AttentionWork>(&work))
    fitted = accelerator.efficiency.matrix_main_loop > 0.0 && is_fitted_shape(*attention);
  return fitted ? CostBasis::Formula : CostBasis::Extrapolated;
}

// A graph is issued as a whole.
std::optional<Seconds> group_issue(const StackSpec& stack, double host_speed) {
  if (stack.fusion.grouped_gemm) return std::nullopt;
  return stack.host.cuda_graphs ? Seconds(0) : stack.host.launch_time / host_speed;
}

KernelCost cost_of(const Work& work, Precision precision, const AcceleratorSpec& accelerator,
                   const StackSpec& stack, double host_speed) {
  if (const auto* gemm = std::get_if<GemmWork>(&work))
    return gemm_cost(*gemm, precision, accelerator, group_issue(stack, host_speed));
  if (const auto* attention = std::get_if<AttentionWork>(&work))
    return attention_cost(*attention, precision, accelerator, stack);
  return memory_cost(std::get<MemoryWork>(work), accelerator);
}

}  // namespace

KernelCost formula_cost(OpKind kind, const Work& work, Precision precision,
                        const AcceleratorSpec& accelerator, const StackSpec& stack,
                        double host_speed) {
  SHARDWRIGHT_CHECK(
      !is_communication(kind) && kind != OpKind::Offload && kind != OpKind::HostOptimizer,
      "no kernel of the device alone: kind " + std::to_string(static_cast<int>(kind)));
  KernelCost cost = cost_of(work, precision, accelerator, stack, host_speed);
  cost.basis = basis_of(work, accelerator);
  return cost;
}

KernelCost kernel_cost(OpKind kind, const Work& work, Precision precision,
                       const AcceleratorSpec& accelerator, const StackSpec& stack,
                       double host_speed) {
  return with_measurements(formula_cost(kind, work, precision, accelerator, stack, host_speed),
                           kind, work, precision, accelerator, stack, host_speed);
}

Seconds kernel_time(OpKind kind, const Work& work, Precision precision,
                    const AcceleratorSpec& accelerator, const StackSpec& stack) {
  return kernel_cost(kind, work, precision, accelerator, stack).time;
}

KernelCost kernel_cost(OpKind kind, const Work& work, Precision precision,
                       const ClusterSpec& cluster, const StackSpec& stack, Phase phase) {
  if (kind == OpKind::Offload)
    return offload_cost(std::get<MemoryWork>(work), cluster.node.host, cluster.accelerator);
  const auto curve = curve_cost(kind, phase, work, precision, cluster.accelerator);
  if (curve && cluster.accelerator.measured_kernels.empty()) return *curve;
  const KernelCost cost =
      kernel_cost(kind, work, precision, cluster.accelerator, stack, cluster.node.host.speed);
  return curve && cost.basis != CostBasis::Measured ? *curve : cost;
}

}  // namespace shardwright::sim
