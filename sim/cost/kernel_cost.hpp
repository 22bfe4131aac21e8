// The cost of one kernel on one device: the dispatch over the kinds of work.
//
// GEMMs are in gemm_cost.hpp, fused attention in attention_cost.hpp, everything that is limited by
// memory traffic in memory_cost.hpp. All three rest on `AcceleratorSpec` alone, its
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

}  // namespace shardwright::sim
