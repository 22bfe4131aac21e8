// Initial values of parameters as a function of seed, name and index in the whole parameter, so
// that they are the same under every plan.
#pragma once

#include <cstdint>
#include <span>

#include "core/spec/model_spec.hpp"
#include "executor/runtime/parameter_layout.hpp"

namespace shardwright::executor {

// Sets biases and padding to 0 and norms to 1. Matrices are normal with a deviation of 0.02, or of
// 0.02 / sqrt(2 layers) at the end of residual branches (GPT-2: Radford et al. 2019, section 2.3).
void fill_initial(const ModelSpec& model, std::uint64_t seed, const ParameterSlice& slice,
                  std::span<float> values);

}  // namespace shardwright::executor
