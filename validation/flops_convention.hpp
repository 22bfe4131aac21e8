// How a source counts the FLOP behind its TFLOP/s and MFU.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/base/units.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"

namespace shardwright::validation {

// Whether a recomputed forward pass counts as a fourth one. It leaves out the output head, as the
// formula of Megatron-LM does (arXiv 2104.04473, equation 3).
enum class CountedRecomputation : std::uint8_t {
  None,   // model FLOPs
  AsRun,  // hardware FLOPs: that of the layers that the plan recomputes as a whole
  Whole,  // that of all layers, by a formula of four passes, whatever the plan
};
constexpr auto enum_names(CountedRecomputation) {
  return std::array{"none", "as_run", "whole"};
}

struct FlopsConvention {
  double attention_share = 1.0;  // of the full score matrix: 0.5 where only the causal half counts
  CountedRecomputation recomputation = CountedRecomputation::None;
  bool peak_is_bf16 = false;  // MFU is of the bf16 peak, whatever format was multiplied in

  bool operator==(const FlopsConvention&) const = default;
};

// "causal half of the attention scores, recomputation not counted".
std::string description_of(const FlopsConvention& convention);

// FLOP that the source would count for one step over all accelerators.
Flop counted_flop(const ModelSpec& model, const Plan& plan, const FlopsConvention& convention);

}  // namespace shardwright::validation
