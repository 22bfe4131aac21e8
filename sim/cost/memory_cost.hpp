// The time of kernels that are limited by memory traffic, and of copies to and from the host.
//
//   time = kernels * overhead + max(bytes / bandwidth, flop / vector peak)
//
// The overhead per launch (fill and drain) gives the ramp of achieved bandwidth with size.
// `bandwidth` is the achieved memory bandwidth or, as far as the bytes of one launch stay resident
// in the L2 cache, that of the cache. Offload is limited by the link to the host, which works in
// both directions at once.
#pragma once

#include "core/program/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "sim/cost/cost.hpp"

namespace shardwright::sim {

KernelCost memory_cost(const MemoryWork& work, const AcceleratorSpec& accelerator);

// A copy between device and host memory.
KernelCost offload_cost(const MemoryWork& work, const HostSpec& host,
                        const AcceleratorSpec& accelerator);

}  // namespace shardwright::sim
