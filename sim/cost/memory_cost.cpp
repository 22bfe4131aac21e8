#include "sim/cost/memory_cost.hpp"

#include <algorithm>

namespace shardwright::sim {
namespace {

// DeepSpeed's CPU-Adam updates 10e9 parameters in 2.57 s on two Xeon Platinum 8168 (ZeRO-Offload,
// arXiv 2101.06840, table 4), which touches 30 bytes of each: 117 GB/s of 256 GB/s, the bandwidth
// of their twelve channels of DDR4-2666.
constexpr double kHostUpdateEfficiency = 0.46;

}  // namespace

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
