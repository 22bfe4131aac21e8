// FLOP that a training step of a model counts for.
#pragma once

#include "core/base/units.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"

namespace shardwright {

// Model FLOP of one step over all ranks: what the forward and backward pass of the model take, with
// attention counted over the whole score matrix and without recomputation (the convention of
// Megatron-LM and PaLM, arXiv 2104.04473 section 5.1, 2204.02311 appendix B). Frozen weights count
// without the products of their gradients.
Flop model_flop_per_step(const ModelSpec& model, const Plan& plan);

}  // namespace shardwright
