// On which device a run computes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/spec/precision.hpp"
#include "executor/launch/launch_place.hpp"
#include "executor/launch/rank_backend.hpp"

namespace shardwright::executor {

// `wanted` is "cpu", "cuda" or "auto": a GPU for a plan in bf16 where there is one, otherwise the
// CPU. Throws InputError if a GPU is wanted and there is none.
Device choose_device(const std::string& wanted, Precision precision);

// open_cpu or open_cuda (rank_backend.hpp); throws what they throw.
std::unique_ptr<RankBackend> open_backend(Device device, TcpStore* store, const LaunchPlace& place,
                                          const BackendOptions& options);

// Throws InputError if ranks of this host would have to share a GPU without being told to.
void check_gpus(std::int64_t ranks_of_host, bool share_gpu);

}  // namespace shardwright::executor
