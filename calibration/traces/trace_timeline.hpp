// A trace as a timeline, for looking at it.
#pragma once

#include <cstddef>

#include "calibration/traces/trace.hpp"
#include "core/timeline/timeline.hpp"

namespace shardwright::calibration {

// Returns what ran on the devices of a trace, each of which is a rank of the timeline. The first
// activity starts at time zero.
Timeline timeline_of(const Trace& trace);

// A picture shows no more activities. A trace that marks no steps is one step of any length.
inline constexpr std::size_t kMostInAPicture = 500'000;

// The same of one recorded step, the middle one of `device_steps`, which starts at time zero: its
// first kMostInAPicture activities. Empty if nothing ran on a device.
Timeline timeline_of_one_step(const Trace& trace);

}  // namespace shardwright::calibration
