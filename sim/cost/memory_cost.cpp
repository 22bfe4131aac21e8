#include "sim/cost/memory_cost.hpp"

#include <algorithm>

namespace shardwright::sim {

// time = kernels * overhead + max(bytes / bandwidth, flop / vector peak)
//
// A launch that moves few bytes does not fill the device's memory pipeline: each of them pays the
// kernel overhead (fill and drain), which gives the ramp of achieved bandwidth with size. Where the
// bytes of one launch fit in the L2 cache, they move at the cache's bandwidth.
KernelCost memory_cost(const MemoryWork& work, const AcceleratorSpec& accelerator) {
  const KernelEfficiency& efficiency = accelerator.efficiency;
  const auto kernels = static_cast<double>(std::max<std::int64_t>(1, work.kernels));
  const Bytes traffic = work.read + work.written;
  if (traffic <= Bytes(0) && work.flop <= Flop(0)) return {};

  const bool in_cache = traffic / kernels <= accelerator.l2_cache * efficiency.l2_share;
  const double speedup = in_cache ? efficiency.l2_bandwidth_ratio : 1.0;
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

}  // namespace shardwright::sim
