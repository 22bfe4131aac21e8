// What memory snapshots say, as text, and beside the memory that a plan is predicted to need.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "calibration/traces/memory_snapshot.hpp"
#include "cli/output/page.hpp"
#include "sim/memory/memory_replay.hpp"

namespace shardwright::cli {

// The peaks of each device and what it holds then. `planned`: the peak of the fullest stage, of a
// plan.
void add_memory_snapshot(Page& page, const calibration::MemorySnapshot& snapshot,
                         const std::optional<sim::MemoryPeak>& planned);

// {"predicted_allocated_bytes", "predicted_reserved_bytes", "predicted": the peak by category}.
nlohmann::ordered_json planned_memory_json(const sim::MemoryPeak& planned);

}  // namespace shardwright::cli
