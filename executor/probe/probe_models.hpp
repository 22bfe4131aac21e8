// What a probe trains for a few steps, so that kernels of many shapes are timed as they run in
// training.
#pragma once

#include <vector>

#include "core/spec/scenario.hpp"
#include "executor/launch/rank_backend.hpp"

namespace shardwright::executor {

// Decoders of several widths and families, each on a single rank: small ones in fp32 on CPUs; on
// GPUs some of widths from 1024 to 4096 in bf16, each of which 8 GB hold.
std::vector<Scenario> probe_scenarios(const ClusterSpec& machine, Device device);

}  // namespace shardwright::executor
