// The time of a matrix multiplication.
//
// The output is cut into tiles; each occupies one compute unit for the length of k. Tiles run in
// waves over the units:
//
//   time    = overhead + (compute^3 + memory^3)^(1/3) + exposed * result
//   compute = min over tiles and split-k of ((waves * tile + reduce)^3 + operands^3)^(1/3) * power
//   tile    = 2 tm tn (k / split + fill) / (peak * efficiency * reuse(tm, tn) / units)
//   waves   = loss * ceil(blocks / units) + (1 - loss) * max(1, blocks / units)
//   reduce:   split-k only: the partial sums' traffic and the kernel that adds them up
//   operands: each tile reads (tm + tn) k elements through the L2 cache
//   memory:   each operand and result once, at the achieved memory bandwidth
//   result:   the time to write the result; a tile's last step, which nothing of that tile hides
//   power   = 1 + slowdown * work / (work + delay): long GEMMs run into the power limit
//
// The cubes round the corners of the roofline where two limits are near each other. Experts' GEMMs
// that a library runs one by one, on several streams, hide each other's overhead, but each one has
// its own waves and none starts before the host has issued it:
//
//   time    = overhead + groups * max(time of one without its overhead, issue)
//
// The constants of the architecture's tiles are shared by all devices, those of the device are in
// KernelEfficiency and fitted (`shardwright fit kernels`). Range: measured on k from 256 to 130,000
// and m, n from 64 to 130,000 (A100, H100, H800, H200, B200). Known to be off: tf32 on Hopper
// (libraries choose its tiles less well), batched shapes that an autotuner has not met. Background:
// NVIDIA, Matrix Multiplication Background User's Guide; Osama et al., Stream-K (arXiv 2301.03598).
#pragma once

#include <optional>

#include "core/op/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/precision.hpp"
#include "sim/cost/cost.hpp"

namespace shardwright::sim {

// `precision` is that of the operands; fp8 operands take one byte and give a bf16 output. With
// `work.groups` experts, each is taken to hold an equal part of the rows that they share. `issue`:
// the host's time for one GEMM, where a library runs those of the experts one by one; none: one
// kernel runs them all.
KernelCost gemm_cost(const GemmWork& work, Precision precision, const AcceleratorSpec& accelerator,
                     std::optional<Seconds> issue = std::nullopt);

}  // namespace shardwright::sim
