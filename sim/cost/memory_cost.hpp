// The time of kernels that are limited by memory traffic, and of copies to and from the host.
#pragma once

#include "core/program/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "sim/cost/cost.hpp"

namespace shardwright::sim {

KernelCost memory_cost(const MemoryWork& work, const AcceleratorSpec& accelerator);

// Between device and host memory; the link works in both directions at once.
KernelCost offload_cost(const MemoryWork& work, const HostSpec& host,
                        const AcceleratorSpec& accelerator);

}  // namespace shardwright::sim
