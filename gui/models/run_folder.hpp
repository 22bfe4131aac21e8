// What a run left in its folder, and what it teaches about the machine.
#pragma once

#include <QString>
#include <memory>
#include <optional>
#include <vector>

#include "calibration/calibrate.hpp"
#include "core/base/large_json_file.hpp"
#include "core/spec/scenario.hpp"
#include "core/timeline/timeline.hpp"

namespace shardwright::gui {

// A folder that `shardwright run --out` wrote.
struct RunFolder {
  QString folder;
  // The path of its metrics.jsonl.
  QString metrics;
  // The timelines of the last step that the largest number of ranks recorded.
  std::vector<QString> timelines;
  // The path of its plan.json if the window started the run, else empty.
  QString plan;
};

// None where the folder has no metrics.
std::optional<RunFolder> find_run(const QString& folder);

// The recorded step with the spans of all ranks; null where none was recorded. Throws InputError,
// and ReadingStopped where `watch` asks for it.
std::shared_ptr<const Timeline> read_measured_step(const RunFolder& run,
                                                   const ReadingWatch& watch = {});

// Why `folder` teaches nothing about its cluster; empty if it may. Cheap: file names, and the plan.
QString calibration_obstacle(const QString& folder);

// What a run teaches about its cluster.
struct RunCalibration {
  // The run's model, cluster, stack and plan.
  Scenario scenario;
  // The refitted profile.
  ClusterSpec cluster;
  // The number of figures of the profile for which the run has timings.
  std::size_t figures = 0;
  // The measured step, and the predicted one with the profile before and after.
  calibration::StepComparison step;
};

// Refits the profile that the run's plan names (calibration/calibrate.hpp). Throws InputError
// with what the folder lacks, and where the run computed on another kind of device than the
// profile's (calibration/calibrate.hpp).
RunCalibration calibrate_run(const QString& folder);

// A file in `folder`, which is not there yet, for the refitted profile.
QString free_profile_name(const QString& folder);

}  // namespace shardwright::gui
