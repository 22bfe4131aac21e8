// The time of fused (FlashAttention-like) attention.
//
// A block of queries walks over the keys and values that its mask shows:
//
//   time    = overhead + max((compute^4 + longest^4)^(1/4), memory)
//   compute = scores' products * (1 + (start + diagonal) / visible) / (peak * efficiency * speed)
//   visible = kv_tokens * score_share, the keys that a query sees on average
//   longest = the block that sees the most keys, alone on a compute unit
//   speed   = d / 128 * score(128) / score(d)
//   score   = max(products, softmax) + (1 - overlap) * min(products, softmax)
//             products: 2 d FLOP each at the matrix peak, two in the forward pass and five
//             backward; softmax: one exponential on the special-function units, whatever the width
//   memory  = queries, keys, values and results once (in the backward pass gradients, too)
//
// `start` is a block's fixed cost in keys; `diagonal` are the masked keys that share a tile with
// visible ones, none without a mask. Where values are narrower than queries (MLA), kernels pad
// them. `attention_kernel` of the StackSpec says how far the stack's kernels are from the device's
// best, `attention_kernel_ratio` (`hopper_attention_kernel_ratio` on Hopper and later) what remains
// of that in a step.
// Sources: FlashAttention-2, -3 and -4 (arXiv 2307.08691, 2407.08608, 2603.05451) and the
// measurements in measurements/kernels.jsonl. Known to be off: kernels shorter than 0.1 ms.
#pragma once

#include "core/op/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/precision.hpp"
#include "core/spec/stack_spec.hpp"
#include "sim/cost/cost.hpp"

namespace shardwright::sim {

// Hopper and later: matrix units that work asynchronously and need attention kernels of their own.
bool has_asynchronous_matrix_units(const AcceleratorSpec& accelerator);

// Speed of a kernel over the best one for the device, 1 at most.
double attention_kernel_speed(AttentionKernel kernel, const AcceleratorSpec& accelerator);

// Attention stays in bf16 in fp8 training, as its inputs are, unless the stack runs it in fp8.
KernelCost attention_cost(const AttentionWork& work, Precision precision,
                          const AcceleratorSpec& accelerator, const StackSpec& stack);

}  // namespace shardwright::sim
