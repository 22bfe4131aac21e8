#include "sim/cost/curve_cost.hpp"

#include <algorithm>

#include "sim/cost/matrix_peak.hpp"

namespace shardwright::sim {
namespace {

Phase phase_of_curve(Phase phase) {
  return phase == Phase::Recompute ? Phase::Forward : phase;
}

double share(double edge, std::int64_t size) {
  return size > 0 ? edge / static_cast<double>(size) : 0.0;
}

Seconds product_time(const KernelCurve& curve, const GemmWork& work) {
  const std::int64_t groups = std::max<std::int64_t>(1, work.groups);
  const std::int64_t rows = work.groups_share_k ? work.m : work.m / groups;
  const std::int64_t depth = work.groups_share_k ? work.k / groups : work.k;
  const double moving =
      share(curve.edge_m, rows) + share(curve.edge_n, work.n) + share(curve.edge_k, depth);
  return curve.overhead * static_cast<double>(groups) +
         work.flop() / curve.flop_rate * (1.0 + moving);
}

Seconds attention_time(const KernelCurve& curve, const AttentionWork& work) {
  const double scores = static_cast<double>(work.batch * work.heads) *
                        static_cast<double>(work.q_tokens) * static_cast<double>(work.kv_tokens);
  return curve.overhead + work.flop() / curve.flop_rate / work.score_share + curve.score * scores;
}

Seconds streaming_time(const KernelCurve& curve, const MemoryWork& work) {
  const auto kernels = static_cast<double>(std::max<std::int64_t>(1, work.kernels));
  return curve.overhead * kernels + (work.read + work.written) / curve.bandwidth;
}

}  // namespace

const KernelCurve* curve_of(const AcceleratorSpec& accelerator, OpKind kind, Phase phase) {
  const KernelCurve* found = nullptr;
  for (const KernelCurve& curve : accelerator.kernel_curves) {
    if (curve.kind != kind) continue;
    if (curve.phase == phase_of_curve(phase)) return &curve;
    if (found == nullptr) found = &curve;
  }
  return found;
}

Seconds curve_time(const KernelCurve& curve, const Work& work) {
  if (const auto* gemm = std::get_if<GemmWork>(&work)) return product_time(curve, *gemm);
  if (const auto* attention = std::get_if<AttentionWork>(&work))
    return attention_time(curve, *attention);
  return streaming_time(curve, std::get<MemoryWork>(work));
}

std::optional<KernelCost> curve_cost(OpKind kind, Phase phase, const Work& work,
                                     Precision precision, const AcceleratorSpec& accelerator) {
  const KernelCurve* curve = curve_of(accelerator, kind, phase);
  if (curve == nullptr) return std::nullopt;
  const Flop flop = model_flop(work);
  const auto* memory = std::get_if<MemoryWork>(&work);
  if (memory == nullptr && flop <= Flop(0)) return KernelCost{};
  KernelCost cost;
  cost.time = curve_time(*curve, work);
  cost.compute_bound = memory == nullptr;
  cost.efficiency = cost.compute_bound ? flop / cost.time / matrix_peak(accelerator, precision)
                                       : (memory->read + memory->written) / cost.time /
                                             accelerator.memory_bandwidth;
  return cost;
}

const ExchangeCurve* curve_of(const ClusterSpec& cluster, OpKind kind,
                              const GroupPlacement& placement) {
  const OpKind wanted = kind == OpKind::Receive ? OpKind::Send : kind;
  for (const ExchangeCurve& curve : cluster.exchange_curves) {
    if (curve.kind == wanted && curve.members == placement.size && curve.nodes == placement.nodes &&
        curve.span == extent_of(placement))
      return &curve;
  }
  return nullptr;
}

Seconds transfer_time(const ExchangeCurve& curve, Bytes bytes) {
  return curve.alpha + bytes / curve.beta;
}

Seconds curve_time(const ExchangeCurve& curve, Bytes bytes) {
  return transfer_time(curve, bytes) + curve.skew;
}

}  // namespace shardwright::sim
