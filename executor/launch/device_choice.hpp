// The device of a run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/spec/precision.hpp"
#include "executor/launch/launch_place.hpp"
#include "executor/launch/rank_backend.hpp"

namespace shardwright::executor {

// `wanted` is "cpu", "cuda" or "auto": a GPU if the plan is in bf16 and there is one, otherwise the
// CPU. Throws InputError if a GPU is requested and there is none.
Device choose_device(const std::string& wanted, Precision precision);

// Calls open_cpu or open_cuda (rank_backend.hpp).
std::unique_ptr<RankBackend> open_backend(Device device, TcpStore* store, const LaunchPlace& place,
                                          const BackendOptions& options);

// Throws InputError if this host has fewer GPUs than ranks and `share_gpu` is false.
void check_gpus(std::int64_t ranks_of_host, bool share_gpu);

}  // namespace shardwright::executor
