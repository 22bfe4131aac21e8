// How large a batch has to be for the machine to run at its rate.
#pragma once

#include <cstdint>

#include "planner/search.hpp"

namespace shardwright::planner {

// Share of the best throughput that the knee has to reach.
inline constexpr double kKneeThroughput = 0.95;
inline constexpr double kDefaultLargestBatchTokens = 16.0 * 1024.0 * 1024.0;

// The smallest global batch (sequences) with at least `kKneeThroughput` of the highest tokens per
// second among the powers of two up to `request.max_global_batch`. It weighs throughput alone, not
// the tokens that a larger batch needs to reach the same loss. Batches that no plan runs
// are passed over; where none fits, the largest one that was tried.
std::int64_t throughput_knee(const PlanRequest& request);

}  // namespace shardwright::planner
