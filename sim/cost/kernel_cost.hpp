// The cost of one kernel on one device: the dispatch over the kinds of work.
//
// GEMMs are in gemm_cost.hpp, fused attention in attention_cost.hpp, everything that is limited by
// memory traffic is here. All three rest on `AcceleratorSpec` alone, its
// `KernelEfficiency` included; nothing is fitted per model or per published run. Where the
// accelerator has measured kernels, these go before the formulas (measured_kernels.hpp).
#pragma once

#include "core/op/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/precision.hpp"
#include "core/spec/stack_spec.hpp"
#include "sim/cost/cost.hpp"

namespace shardwright::sim {

// The cost of a kernel that runs on the device alone. `kind` must be neither a communication nor
// `OpKind::Offload`, whose path is the node's (see the overload for clusters), and
// `OpKind::HostOptimizer`, which the ranks of a node share (`host_update_cost`).
// `host_speed`: as in HostSpec; the host issues the GEMMs of experts.
KernelCost kernel_cost(OpKind kind, const Work& work, Precision precision,
                       const AcceleratorSpec& accelerator, const StackSpec& stack,
                       double host_speed = 1.0);

// Prices by the formulas alone, whatever was measured.
KernelCost formula_cost(OpKind kind, const Work& work, Precision precision,
                        const AcceleratorSpec& accelerator, const StackSpec& stack,
                        double host_speed = 1.0);

// `kernel_cost(...).time`.
Seconds kernel_time(OpKind kind, const Work& work, Precision precision,
                    const AcceleratorSpec& accelerator, const StackSpec& stack);

// Prices with the node at hand, so that `OpKind::Offload` can be priced, too. A curve of the
// accelerator for the kind goes before all else.
KernelCost kernel_cost(OpKind kind, const Work& work, Precision precision,
                       const ClusterSpec& cluster, const StackSpec& stack,
                       Phase phase = Phase::Forward);

KernelCost memory_cost(const MemoryWork& work, const AcceleratorSpec& accelerator);

// A copy between device and host memory.
KernelCost offload_cost(const MemoryWork& work, const HostSpec& host,
                        const AcceleratorSpec& accelerator);

// The share of a host's memory bandwidth that the optimizer's step reaches there. DeepSpeed's
// CPU-Adam updates 10e9 parameters in 2.57 s on two Xeon Platinum 8168 (ZeRO-Offload, arXiv
// 2101.06840, table 4), which touches 30 bytes of each: 117 GB/s of 256 GB/s, the bandwidth of
// their twelve channels of DDR4-2666.
inline constexpr double kHostUpdateEfficiency = 0.46;

// The step of `sharers` ranks of a node, which share its memory and disks alike: copies over the
// link, the update of the states in memory and their way from disk and back run beside each other
// (ZeRO-Infinity, arXiv 2104.07857, 5.2.1), so that the slowest of them sets the pace. Disks read
// and write by turns. Memory is read and written at the share of its bandwidth that CPU-Adam was
// measured to reach.
KernelCost host_update_cost(const HostUpdateWork& work, const HostSpec& host,
                            const AcceleratorSpec& accelerator, std::int64_t sharers);

}  // namespace shardwright::sim
