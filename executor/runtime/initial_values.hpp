// Initial values of parameters: a function of seed, name and place in the whole parameter, so that
// they are the same under every plan.
#pragma once

#include <cstdint>
#include <span>

#include "core/spec/model_spec.hpp"
#include "executor/runtime/parameter_layout.hpp"

namespace shardwright::executor {

// Biases are 0 and norms 1; matrices are normal with a deviation of 0.02, those that end a residual
// branch with 0.02 / sqrt(2 layers) (GPT-2: Radford et al. 2019, section 2.3). Padding is 0.
void fill_initial(const ModelSpec& model, std::uint64_t seed, const ParameterSlice& slice,
                  std::span<float> values);

}  // namespace shardwright::executor
