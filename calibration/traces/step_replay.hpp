// The steps of traced ranks run again: with kernel times of a table, or in another order.
//
// An activity starts once its host has launched it, what is before it on its stream has ended, and
// what it waits for on other streams has ended; a collective runs from the arrival of the last of
// the ranks that are traced. Launches stay at their recorded times. Waits across streams are those
// that the trace shows: of a collective, the last kernel before it in the order of launch that had
// ended by its start; of a kernel, what ended on another stream just before it began although its
// host and its stream were ready.
#pragma once

#include <optional>
#include <vector>

#include "calibration/traces/kernel_times.hpp"
#include "calibration/traces/trace.hpp"
#include "core/base/units.hpp"

namespace shardwright::calibration {

struct ReplayOptions {
  // Takes recorded durations where it is null.
  const KernelTimes* times = nullptr;
  // Starts each reduction of a single gradient as soon as the gradient is there.
  bool reduce_when_ready = false;
  // The share by which kernels take longer beside reductions that were moved.
  double slowdown = 0.1;
};

struct ReplayedSteps {
  // The time from the first activity of a step to that of the next one: means over ranks and steps.
  Seconds recorded, replayed;
  // The reductions of a step that were moved.
  double moved = 0.0;
};

// Replays the traces of different ranks of one run, or of one rank. Returns nothing if nothing ran
// on devices.
std::optional<ReplayedSteps> replay_steps(const std::vector<Trace>& ranks,
                                          const ReplayOptions& options);

}  // namespace shardwright::calibration
