// The steps of a trace as its device runs them.
#pragma once

#include <cstdint>
#include <vector>

#include "calibration/traces/trace.hpp"

namespace shardwright::calibration {

struct DeviceStep {
  // In the order in which the host launched them, or else by start. At least one.
  Activities activities;
  // From the start of its first activity to that of the next step's, or to its own last end.
  std::int64_t begin = 0, end = 0;
};

// The steps of the device that ran most activities. The first recorded one is left out where there
// are others, because kernels that were queued before run in it; so is a last one that breaks off. A
// trace without marked steps is one step.
std::vector<DeviceStep> device_steps(const Trace& trace);

// The activities of the device that ran most of them, by start.
Activities activities_of_busiest(const Trace& trace);

}  // namespace shardwright::calibration
