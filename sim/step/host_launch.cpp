#include "sim/step/host_launch.hpp"

#include <cstdint>
#include <variant>

namespace shardwright::sim {
namespace {

// That have to be launched before the op may start.
std::int64_t kernels_of(const Op& op) {
  const auto* memory = std::get_if<MemoryWork>(&op.work);
  return memory == nullptr ? 1 : memory->kernels;
}

}  // namespace

double HostLaunch::of(const Op& op, bool first_of_call) const {
  if (per_call) return first_of_call ? kernel.value() : 0.0;
  return kernel.value() * static_cast<double>(kernels_of(op));
}

double HostLaunch::further_of(const Op& op) const {
  return per_call ? 0.0 : kernel.value() * op.further_launches;
}

HostLaunch host_launch(const StackSpec& stack, const ClusterSpec& cluster) {
  return {stack.launch_time / cluster.node.host.speed, stack.cuda_graphs};
}

}  // namespace shardwright::sim
