// How a source counts the FLOP behind its TFLOP/s and MFU.
#pragma once

#include <string>

#include "core/base/units.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"

namespace shardwright::sim {

struct FlopsConvention {
  double attention_share = 1.0;  // of the full score matrix: 0.5 where only the causal half counts
  // A fourth pass, the recomputed forward pass, counts as well. It leaves out the output head, as
  // the formula of Megatron-LM does (arXiv 2104.04473, equation 3).
  bool counts_recomputation = false;
  bool peak_is_bf16 = false;  // MFU is of the bf16 peak, whatever format was multiplied in
};

// From the text of a row. Where it does not tell, the convention of Megatron-LM and PaLM without
// recomputation is meant.
FlopsConvention flops_convention_in(const std::string& text);

// FLOP that the source would count for one step over all accelerators.
Flop counted_flop(const ModelSpec& model, const Plan& plan, const FlopsConvention& convention);

}  // namespace shardwright::sim
