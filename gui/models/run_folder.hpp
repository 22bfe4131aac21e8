// What a run left in its folder, and what it teaches about the machine.
#pragma once

#include <QString>
#include <memory>
#include <optional>
#include <vector>

#include "core/spec/scenario.hpp"
#include "core/timeline/timeline.hpp"

namespace shardwright::gui {

// A folder that `shardwright run --out` wrote.
struct RunFolder {
  QString folder;
  QString metrics;                 // its metrics.jsonl
  std::vector<QString> timelines;  // of the last step that was recorded, by rank
  QString plan;                    // its plan.json, where this window started it; else empty
};

// None where the folder has no metrics.
std::optional<RunFolder> find_run(const QString& folder);

// The recorded step with the spans of all ranks; null where none was recorded. Throws InputError.
std::shared_ptr<const Timeline> read_measured_step(const RunFolder& run);

struct RunCalibration {
  std::size_t kernels = 0;  // of different shapes that were measured
  Seconds measured;
  Seconds before, after;  // predicted with the profile alone, and with the measured kernels

  double error_before() const { return before / measured - 1.0; }
  double error_after() const { return after / measured - 1.0; }
};

// Simulates the plan again with the median time of each kernel that `timeline` measured. `measured`
// is the step time of the run. Throws RuntimeFailure if the timeline has no kernel of the plan.
RunCalibration calibrate_with(const Scenario& scenario, const Timeline& timeline, Seconds measured);

}  // namespace shardwright::gui
