// The models that a probe trains for a few steps to time kernels of many shapes.
#pragma once

#include <vector>

#include "core/spec/scenario.hpp"
#include "executor/launch/rank_backend.hpp"

namespace shardwright::executor {

// Returns decoders of several widths and families, each on one rank: small ones in fp32 on CPUs;
// widths from 1024 to 4096 in bf16 on GPUs, each of which fits into 8 GB.
std::vector<Scenario> probe_scenarios(const ClusterSpec& machine, Device device);

}  // namespace shardwright::executor
