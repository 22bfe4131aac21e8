// The batch from which on a machine runs at nearly its best rate.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/search.hpp"

namespace shardwright::planner {

// The share of the best throughput that the knee has to reach.
inline constexpr double kKneeThroughput = 0.95;
inline constexpr double kDefaultLargestBatchTokens = 16.0 * 1024.0 * 1024.0;

// Returns the batches, in sequences, that are tried on the GPUs of a request, ascending: the powers
// of two up to `most`, and those times the odd part of the number of GPUs, which 384 GPUs can
// divide among 3, 6, … replicas. On several pools the odd part of each pool's number counts, too.
std::vector<std::int64_t> even_batches(double most, const PlanRequest& request);

struct KneeBatch {
  // In sequences.
  std::int64_t batch = 1;
  // The partial result with this batch, if the request was stopped on the way.
  std::optional<SearchResult> stopped;
};

// Returns the smallest global batch (sequences) with at least `kKneeThroughput` of the highest
// tokens per second among `even_batches` up to `request.max_global_batch`, or among the batches
// that the constraints fix. Only throughput counts, not the tokens that a larger batch needs to
// reach the same loss. Batches that no plan runs are skipped; if no batch fits, returns the largest
// one. Batches are tried from the largest one down to 1/64 of it, and further until two fall below
// the knee. The request's `progress` follows the search of each batch.
KneeBatch throughput_knee(const PlanRequest& request);

}  // namespace shardwright::planner
