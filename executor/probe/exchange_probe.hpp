// Times collectives and messages over sizes, in the groups that plans make.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/spec/exchange_sample.hpp"
#include "executor/comm/rank_communicators.hpp"

namespace shardwright::executor {

// Is told in words how far a probe is.
using SayProgress = std::function<void(const std::string& text)>;

// Groups of 2, 4, … ranks that lie 1, 2, 4, … apart, and all ranks. All ranks call it; each gets
// the mean time over the world, the second best of several tries. Throws CommunicationError.
std::vector<ExchangeSample> probe_exchanges(std::int64_t rank, std::int64_t world,
                                            const OpenCommunicator& open,
                                            const SayProgress& say = nullptr);

}  // namespace shardwright::executor
