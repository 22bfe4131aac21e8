// The time of a matrix multiplication.
#pragma once

#include "core/program/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/precision.hpp"
#include "sim/cost/cost.hpp"

namespace shardwright::sim {

// `precision` is that of the operands. fp8 operands take one byte and give a bf16 output.
KernelCost gemm_cost(const GemmWork& work, Precision precision, const AcceleratorSpec& accelerator);

}  // namespace shardwright::sim
