// Times collectives and point-to-point transfers over sizes, in the groups that plans use.
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

// Receives a description of the progress.
using ReportProgress = std::function<void(const std::string& text)>;

// Returns sizes in bytes, ascending: up to 4 MiB on CPUs, 256 MiB on GPUs.
std::span<const std::size_t> transfer_sizes(Device device);

// Times groups of 2, 4, … ranks with strides 1, 2, 4, …, and of all ranks, with buffers of the
// backend's device. All ranks call it; each gets the mean time over all ranks, the second best of
// several tries. Throws CommunicationError, OpError.
//
// On a GPU, CUDA events give the times, and each try follows other work in the queue: the host
// takes longer to issue a small transfer than the GPU to run it, so it must be ahead.
std::vector<ExchangeSample> probe_communication(std::int64_t rank, std::int64_t world,
                                                RankBackend& backend, Device device,
                                                const ReportProgress& report = nullptr);

}  // namespace shardwright::executor
