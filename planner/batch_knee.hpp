// How large a batch has to be for the machine to run at its rate.
#pragma once

#include <cstdint>
#include <optional>

#include "planner/search.hpp"

namespace shardwright::planner {

// Share of the best throughput that the knee has to reach.
inline constexpr double kKneeThroughput = 0.95;
inline constexpr double kDefaultLargestBatchTokens = 16.0 * 1024.0 * 1024.0;

struct KneeBatch {
  std::int64_t batch = 1;  // sequences
  // Where the request was stopped on the way: what was found with this batch, as a partial result.
  std::optional<SearchResult> stopped;
};

// The smallest global batch (sequences) with at least `kKneeThroughput` of the highest tokens per
// second among the powers of two up to `request.max_global_batch`, or among the batches that the
// constraints fix. It weighs throughput alone, not the tokens that a larger batch needs to reach
// the same loss. Batches that no plan runs are passed over; where none fits, the largest one. From
// the largest one down batches are tried as far as 1/64 of it, and on until one falls below the
// knee. The request's `progress` is told each batch's search.
KneeBatch throughput_knee(const PlanRequest& request);

}  // namespace shardwright::planner
