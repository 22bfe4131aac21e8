// What a probe trains for a few steps, so that kernels of many shapes are timed as they run in
// training.
#pragma once

#include <cstdint>
#include <vector>

#include "core/spec/scenario.hpp"

namespace shardwright::executor {

// Small decoders of several widths, depths and families, each data-parallel over all ranks.
std::vector<Scenario> probe_scenarios(const ClusterSpec& machine, std::int64_t ranks);

}  // namespace shardwright::executor
