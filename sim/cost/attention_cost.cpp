#include "sim/cost/attention_cost.hpp"

#include <algorithm>

namespace shardwright::sim {

KernelCost attention_cost(const AttentionWork& work, Precision precision,
                          const AcceleratorSpec& accelerator) {
  const KernelEfficiency& efficiency = accelerator.efficiency;
  if (work.flop() <= Flop(0)) return {};
  const FlopPerSecond peak =
      precision == Precision::Fp16 ? accelerator.matrix.fp16 : accelerator.matrix.bf16;
  const double share = work.backward ? efficiency.attention_backward : efficiency.attention_forward;
  const auto batch = static_cast<double>(work.batch);
  const double query_elements = batch * static_cast<double>(work.heads * work.q_tokens) *
                                static_cast<double>(work.qk_head_dim + work.v_head_dim);
  const double key_elements = batch * static_cast<double>(work.kv_heads * work.kv_tokens) *
                              static_cast<double>(work.qk_head_dim + work.v_head_dim);
  const Bytes traffic =
      storage_bytes(precision) * (query_elements + key_elements) * (work.backward ? 2.0 : 1.0);
  const Seconds computing = work.flop() / (peak * share);
  const Seconds moving = traffic / (accelerator.memory_bandwidth * efficiency.memory);
  const Seconds time = std::max(computing, moving) + efficiency.kernel_overhead;
  const bool compute_bound = computing >= moving;
  return {time,
          compute_bound ? work.flop() / time / peak : traffic / time / accelerator.memory_bandwidth,
          compute_bound};
}

}  // namespace shardwright::sim
