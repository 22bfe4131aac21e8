// The time of a matrix multiplication.
//
// The output is cut into tiles; each occupies one compute unit for the length of k. Tiles run in
// waves over the units:
//
//   time    = overhead + (compute^3 + memory^3)^(1/3)
//   compute = min over tiles and split-k of ((waves * tile)^3 + operands^3)^(1/3) * power
//   tile    = 2 tm tn (k / split + fill) / (peak * efficiency * reuse(tm, tn) / units)
//   waves   = loss * ceil(blocks / units) + (1 - loss) * max(1, blocks / units)
//   operands: each tile reads (tm + tn) k elements through the L2 cache
//   memory:   each operand and result once, at the achieved memory bandwidth
//   power   = 1 + slowdown * work / (work + delay): long GEMMs run into the power limit
//
// The cubes round the corners of the roofline where two limits are near each other. The constants
// of the architecture's tiles are fitted over all devices, those of the device are in
// KernelEfficiency. Range: measured on k from 256 to 130,000 and m, n from 64 to 130,000 (A100,
// H100, H800, H200, B200). Known to be off: tf32 with short k (to 40 %), grouped GEMMs that a
// library runs one by one. Background: NVIDIA, Matrix Multiplication Background User's Guide; Osama
// et al., Stream-K (arXiv 2301.03598).
#pragma once

#include "core/program/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/precision.hpp"
#include "sim/cost/cost.hpp"

namespace shardwright::sim {

// `precision` is that of the operands; fp8 operands take one byte and give a bf16 output. With
// `work.groups` experts that share `m` rows, each is taken to hold an equal part of them.
KernelCost gemm_cost(const GemmWork& work, Precision precision, const AcceleratorSpec& accelerator);

}  // namespace shardwright::sim
