#include "executor/launch/gpu_claims.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"

namespace shardwright::executor {
namespace {

std::string claim_key(std::int64_t rank) {
  return fmt::format("gpu/{}", rank);
}

}  // namespace

void claim_gpu(Store& store, const LaunchPlace& place, const std::string& host,
               const std::string& gpu, std::chrono::milliseconds timeout) {
  const std::string own = host + " " + gpu;
  store.set(claim_key(place.rank), own);
  const std::int64_t first = std::max<std::int64_t>(0, place.rank - place.local_rank);
  const std::int64_t end = std::min(place.world, first + place.local_world);
  for (std::int64_t rank = first; rank < end; ++rank) {
    if (rank == place.rank || store.get(claim_key(rank), timeout) != own) continue;
    throw InputError(
        "--device", {{"",
                      fmt::format("ranks {} and {} on the GPU {} of {}", std::min(rank, place.rank),
                                  std::max(rank, place.rank), gpu, host),
                      "a GPU for each rank, or --share-gpu"}});
  }
}

}  // namespace shardwright::executor
