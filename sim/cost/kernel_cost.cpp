#include "sim/cost/kernel_cost.hpp"

#include <string>

#include "core/base/error.hpp"
#include "sim/cost/attention_cost.hpp"
#include "sim/cost/gemm_cost.hpp"
#include "sim/cost/memory_cost.hpp"

namespace shardwright::sim {

KernelCost kernel_cost(OpKind kind, const Work& work, Precision precision,
                       const AcceleratorSpec& accelerator, const StackSpec& stack) {
  SHARDWRIGHT_CHECK(
      !is_communication(kind) && kind != OpKind::Offload,
      "no kernel of the device alone: kind " + std::to_string(static_cast<int>(kind)));
  if (const auto* gemm = std::get_if<GemmWork>(&work))
    return gemm_cost(*gemm, precision, accelerator);
  if (const auto* attention = std::get_if<AttentionWork>(&work))
    return attention_cost(*attention, precision, accelerator, stack);
  return memory_cost(std::get<MemoryWork>(work), accelerator);
}

Seconds kernel_time(OpKind kind, const Work& work, Precision precision,
                    const AcceleratorSpec& accelerator, const StackSpec& stack) {
  return kernel_cost(kind, work, precision, accelerator, stack).time;
}

KernelCost kernel_cost(OpKind kind, const Work& work, Precision precision,
                       const ClusterSpec& cluster, const StackSpec& stack) {
  if (kind == OpKind::Offload)
    return offload_cost(std::get<MemoryWork>(work), cluster.node.host, cluster.accelerator);
  return kernel_cost(kind, work, precision, cluster.accelerator, stack);
}

}  // namespace shardwright::sim
