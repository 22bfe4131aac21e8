// The share of its random samples that a test draws.
#pragma once

#include "tests/sanitized.hpp"

namespace shardwright::planner {

// A search takes long: under a sanitizer one sample in so many is enough.
inline constexpr int kSampleShare = kSanitized ? 10 : 1;

}  // namespace shardwright::planner
