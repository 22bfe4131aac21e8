// Constants of the architectures that a model spec does not carry.
#pragma once

namespace shardwright::executor {

// Added to the variance inside of the root: GPT-2 (`layer_norm_epsilon`) and Llama 2
// (`rms_norm_eps`) in their published configurations.
inline constexpr double kNormEpsilon = 1e-5;

// Base of the rotary angles (RoFormer, arXiv 2104.09864, section 3.2.2).
inline constexpr double kRopeBase = 10000.0;

}  // namespace shardwright::executor
