// A trace as a timeline, for looking at it.
#pragma once

#include "calibration/traces/trace.hpp"
#include "core/timeline/timeline.hpp"

namespace shardwright::calibration {

// Returns what ran on the devices of a trace, each of which is a rank of the timeline. The first
// activity starts at time zero.
Timeline timeline_of(const Trace& trace);

// The same of one recorded step, the middle one of `device_steps`, which starts at time zero. Empty if
// nothing ran on a device.
Timeline timeline_of_one_step(const Trace& trace);

}  // namespace shardwright::calibration
