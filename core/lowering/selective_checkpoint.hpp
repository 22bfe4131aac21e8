// Per-op recomputation: PyTorch's selective activation checkpointing with torchtitan's policy.
#pragma once

#include <vector>

#include "core/lowering/modules/block_writer.hpp"
#include "core/op/op.hpp"
#include "core/spec/model_spec.hpp"

namespace shardwright {

// Drops from the ops of `recompute`, the forward pass of a layer run again, those whose outputs the
// policy keeps from `forward`: attention kernels with the exchanges around them, reduce-scatters,
// all-to-alls, and every other matrix product. A GEMM that stands for several products of the
// model, as that of queries, keys and values, shrinks to those that run again; `forward` then
// writes one tensor more, which holds the outputs of the others.
//
// `parameters` are those of the layer. Source: torchtitan, _get_custom_policy ("Saves output of all
// compute ops, except every second mm"),
// https://github.com/pytorch/torchtitan/blob/v0.1.0/torchtitan/models/llama3/parallelize_llama.py
void keep_selected_outputs(const std::vector<ParameterTensor>& parameters, const Plan& plan,
                           TensorTable& tensors, std::vector<Op>& forward,
                           std::vector<Op>& recompute);

// Lets the first exchange of context parallelism in a backward pass wait for the kernels before it.
// It sends keys and values that the recomputation has written, and no exchange of the recomputation
// has waited for them.
void wait_for_recomputed_keys(std::vector<Op>& backward);

}  // namespace shardwright
