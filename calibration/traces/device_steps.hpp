// The steps of a trace as its device runs them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "calibration/traces/trace.hpp"
#include "core/base/units.hpp"

namespace shardwright::calibration {

struct DeviceStep {
  // In the order in which the host launched them; those of a stream by start where launches are not
  // known. At least one.
  Activities activities;
  // From the start of its first activity to that of the next step's. The last one, and one before a
  // pause, is as long as the others in the mean; alone it ends with its last activity, but is at
  // least as long as its mark. A pause is longer than kPause usual steps, unless such steps come at
  // equal distances, or lies where the numbers of steps have a gap: there the run evaluates, or the
  // profiler did not record.
  std::int64_t begin = 0, end = 0;
  // That of its mark; 0 without one.
  std::int64_t number = 0;
};

// The steps of the device that ran most activities. The first recorded one is left out where there
// are others, because kernels that were queued before run in it; so is a last one that breaks off.
// A trace without marked steps is one step.
std::vector<DeviceStep> device_steps(const Trace& trace);

inline constexpr double kPause = 3.0;

// The time of a step, wherever one is stated: the mean over the device's steps.
struct UsualStep {
  Seconds time;
  // The numbers of steps and of pauses between them.
  std::int64_t steps = 0, pauses = 0;
};

// None of a trace that marks no steps, or of which nothing ran on a device in a step.
std::optional<UsualStep> usual_step(const Trace& trace);

// The activities of the device that ran most of them, by start.
Activities activities_of_busiest(const Trace& trace);

}  // namespace shardwright::calibration
