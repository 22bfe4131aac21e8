// What a probe trains for a few steps, so that kernels of many shapes are timed as they run in
// training.
#pragma once

#include <vector>

#include "core/spec/scenario.hpp"

namespace shardwright::executor {

// Small decoders of several widths and families, each on a single rank.
std::vector<Scenario> probe_scenarios(const ClusterSpec& machine);

}  // namespace shardwright::executor
