// Times collectives and messages over sizes, in the groups that plans make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/spec/exchange_sample.hpp"
#include "executor/launch/rank_backend.hpp"

namespace shardwright::executor {

// Is told in words how far a probe is.
using SayProgress = std::function<void(const std::string& text)>;

// Bytes, ascending: up to 4 MiB on CPUs, 256 MiB on GPUs.
std::span<const std::size_t> exchange_sizes(Device device);

// Groups of 2, 4, … ranks that lie 1, 2, 4, … apart, and all ranks, with buffers of the backend's
// device. All ranks call it; each gets the mean time over the world, the second best of several
// tries. Throws CommunicationError, OpError.
//
// On a GPU the device's clock tells the times, and each try begins behind other work of the queue,
// so that the host, which takes longer to issue a small exchange than the GPU to do it, is ahead.
// Not yet run on a GPU.
std::vector<ExchangeSample> probe_exchanges(std::int64_t rank, std::int64_t world,
                                            RankBackend& backend, Device device,
                                            const SayProgress& say = nullptr);

}  // namespace shardwright::executor
