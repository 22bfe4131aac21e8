#include "sim/cost/kernel_cost.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "core/base/error.hpp"
#include "sim/cost/attention_cost.hpp"
#include "sim/cost/curve_cost.hpp"
#include "sim/cost/gemm_cost.hpp"
#include "sim/cost/measured_kernels.hpp"

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
  if (const auto* gemm = std::get_if<GemmWork>(&work)) {
    KernelCost cost = gemm_cost(*gemm, precision, accelerator, group_issue(stack, host_speed));
    if (gemm->in_recurrence) {
      const Seconds overhead = accelerator.efficiency.gemm_overhead;
      cost.time = overhead + (cost.time - overhead) / stack.fusion.linear_attention_kernel_ratio;
      cost.efficiency *= stack.fusion.linear_attention_kernel_ratio;
    }
    return cost;
  }
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

KernelCost memory_cost(const MemoryWork& work, const AcceleratorSpec& accelerator) {
  const KernelEfficiency& efficiency = accelerator.efficiency;
  const auto kernels = static_cast<double>(std::max<std::int64_t>(1, work.kernels));
  const Bytes traffic = work.read + work.written;
  if (traffic <= Bytes(0) && work.flop <= Flop(0)) return {};

  const Bytes resident = accelerator.l2_cache * efficiency.l2_share;
  const double cached_share = std::min(1.0, resident / (traffic / kernels));
  // Bytes beyond the resident part push it out again, so that the gain fades quickly with size.
  const double speedup =
      1.0 + (efficiency.l2_bandwidth_ratio - 1.0) * cached_share * cached_share * cached_share;
  const Seconds moving = traffic / (accelerator.memory_bandwidth * (efficiency.memory * speedup));
  const Seconds computing =
      accelerator.vector_fp32 > FlopPerSecond(0) ? work.flop / accelerator.vector_fp32 : Seconds(0);
  const Seconds time = efficiency.kernel_overhead * kernels + std::max(moving, computing);
  return {time, traffic / time / accelerator.memory_bandwidth, false};
}

KernelCost offload_cost(const MemoryWork& work, const HostSpec& host,
                        const AcceleratorSpec& accelerator) {
  const Bytes longer = std::max(work.read, work.written);
  if (longer <= Bytes(0)) return {};
  const Seconds time = accelerator.efficiency.kernel_overhead +
                       longer / (host.accelerator_link * accelerator.efficiency.host_link);
  return {time, longer / time / host.accelerator_link, false};
}

KernelCost host_update_cost(const HostUpdateWork& work, const HostSpec& host,
                            const AcceleratorSpec& accelerator, std::int64_t sharers) {
  if (work.states <= Bytes(0)) return {};
  const auto ranks = static_cast<double>(sharers);
  const Bytes touched = work.gradients + work.weights + 2.0 * work.states;
  const Seconds copies = std::max(work.gradients, work.weights) /
                         (host.accelerator_link * accelerator.efficiency.host_link);
  const Seconds update = touched * ranks / (host.memory_bandwidth * kHostUpdateEfficiency);
  const Seconds disks =
      work.on_disk ? work.states * ranks / host.nvme_read + work.states * ranks / host.nvme_write
                   : Seconds();
  const Seconds time = accelerator.efficiency.kernel_overhead + std::max({copies, update, disks});
  return {time, touched * ranks / time / host.memory_bandwidth, false};
}

}  // namespace shardwright::sim
