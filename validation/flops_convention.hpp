// The conventions by which sources count the FLOP behind their TFLOP/s and MFU.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/base/units.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"

namespace shardwright::validation {

// The ways to count a recomputed forward pass, which leaves out the output head, as the
// formula of Megatron-LM does (arXiv 2104.04473, equation 3).
enum class CountedRecomputation : std::uint8_t {
  // Model FLOPs.
  None,
  // Hardware FLOPs: the pass counts for the layers that the plan recomputes as a whole.
  AsRun,
  // The pass counts for all layers, whatever the plan: a formula of four passes.
  Whole,
};
constexpr auto enum_names(CountedRecomputation) {
  return std::array{"none", "as_run", "whole"};
}

struct FlopsConvention {
  // The share of the score matrix that counts: 0.5 where only the causal half does.
  double attention_share = 1.0;
  CountedRecomputation recomputation = CountedRecomputation::None;
  // MFU is of the bf16 peak, whatever format was multiplied in.
  bool peak_is_bf16 = false;

  bool operator==(const FlopsConvention&) const = default;
};

// Describes a convention: "causal half of the attention scores, recomputation not counted".
std::string description_of(const FlopsConvention& convention);

// The FLOP that the source would count for one step over all accelerators.
Flop counted_flop(const ModelSpec& model, const Plan& plan, const FlopsConvention& convention);

}  // namespace shardwright::validation
