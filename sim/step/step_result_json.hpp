// The parts of a step's time and memory as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/step/step_result.hpp"

namespace shardwright::sim {

// {"compute_s", "gemm_s", …, "exposed": {AXIS: seconds}, "offload_s", "bubble_s", "host_s",
// "stall_s"}.
nlohmann::ordered_json time_json(const TimeBreakdown& time);

// {"peak_bytes", "breakdown": {CATEGORY: bytes}}.
nlohmann::ordered_json memory_json(const MemoryPeak& memory);

}  // namespace shardwright::sim
