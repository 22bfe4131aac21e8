// The time of kernels that are limited by memory traffic, of copies to and from the host, and of
// the optimizer's step on it.
//
//   time = kernels * overhead + max(bytes / bandwidth, flop / vector peak)
//
// The overhead per launch (fill and drain) gives the ramp of achieved bandwidth with size.
// `bandwidth` is the achieved memory bandwidth or, as far as the bytes of one launch stay resident
// in the L2 cache, that of the cache. Offload is limited by the link to the host, which works in
// both directions at once.
#pragma once

#include "core/op/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "sim/cost/cost.hpp"

namespace shardwright::sim {

KernelCost memory_cost(const MemoryWork& work, const AcceleratorSpec& accelerator);

// A copy between device and host memory.
KernelCost offload_cost(const MemoryWork& work, const HostSpec& host,
                        const AcceleratorSpec& accelerator);

// The step of `sharers` ranks of a node, which share its memory and disks alike: copies over the
// link, the update of the states in memory and their way from disk and back run beside each other
// (ZeRO-Infinity, arXiv 2104.07857, 5.2.1), so that the slowest of them sets the pace. Disks read
// and write by turns. Memory is read and written at the share of its bandwidth that CPU-Adam was
// measured to reach.
KernelCost host_update_cost(const HostUpdateWork& work, const HostSpec& host,
                            const AcceleratorSpec& accelerator, std::int64_t sharers);

}  // namespace shardwright::sim
