// The largest of many normally distributed values, which sets the pace of a step on many ranks.
#pragma once

#include <cstdint>

namespace shardwright {

// The expected maximum of `count` (at least 1) independent normal variables of mean 0 and standard
// deviation 1, as integral of x n phi(x) Phi(x)^(n-1).
double expected_maximum(std::int64_t count);

}  // namespace shardwright
