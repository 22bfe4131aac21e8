// Kernels and exchanges by the curves of a profile (core/spec/cost_curve.hpp).
#pragma once

#include <optional>

#include "core/op/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/stack_spec.hpp"
#include "sim/cost/cost.hpp"
#include "sim/cost/placement.hpp"

namespace shardwright::sim {

// The curve of a kind and phase; without one of the phase that of another phase of the kind. Null:
// the device has none of the kind.
const KernelCurve* curve_of(const AcceleratorSpec& accelerator, OpKind kind, Phase phase);

Seconds curve_time(const KernelCurve& curve, const Work& work);

// Returns nothing where the device has no curve of the kind.
std::optional<KernelCost> curve_cost(OpKind kind, Phase phase, const Work& work,
                                     Precision precision, const AcceleratorSpec& accelerator);

// The curve of an exchange within groups of this shape, or null.
const ExchangeCurve* curve_of(const ClusterSpec& cluster, OpKind kind,
                              const GroupPlacement& placement);

Seconds curve_time(const ExchangeCurve& curve, Bytes bytes);
// Leaves the wait for the last member out.
Seconds transfer_time(const ExchangeCurve& curve, Bytes bytes);

}  // namespace shardwright::sim
