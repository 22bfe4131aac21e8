// The time of fused (FlashAttention-like) attention.
#pragma once

#include "core/program/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/precision.hpp"
#include "sim/cost/cost.hpp"

namespace shardwright::sim {

KernelCost attention_cost(const AttentionWork& work, Precision precision,
                          const AcceleratorSpec& accelerator);

}  // namespace shardwright::sim
