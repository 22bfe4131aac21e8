// Two traces of like runs: what makes the step of the second one longer or shorter than that of the
// first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibration/traces/program_match.hpp"
#include "calibration/traces/trace.hpp"
#include "core/base/units.hpp"

namespace shardwright::calibration {

// The means over the compared steps of a trace (device_steps.hpp).
struct TracedStepTimes {
  std::int64_t steps = 0;
  Seconds step;
  // Collectives beside no other kernel; idle times in which the host had not launched the next
  // kernel; other idle times.
  Seconds exposed, host_gaps, other_gaps;
};

// Kernels of one name; matrix products and attention of one operator with the same shapes,
// whichever kernels it chose. Counts and times are those of a step.
struct KernelChange {
  std::string name;
  KernelCategory category = KernelCategory::Other;
  double first_count = 0.0, second_count = 0.0;
  Seconds first, second;
};

struct TraceChange {
  TracedStepTimes first, second;
  // By the time of both together, longest first.
  std::vector<KernelChange> kernels;
  // The ten largest, by size. "Predicted" is the first trace, "measured" the second; what is not in
  // one of them has the cause NotInPlan or NotInTrace likewise.
  std::vector<StepDifference> differences;
};

// Compares, in each trace, the device that ran most activities. Returns none if nothing ran in one
// of the traces.
std::optional<TraceChange> change_between(const Trace& first, const Trace& second);

}  // namespace shardwright::calibration
