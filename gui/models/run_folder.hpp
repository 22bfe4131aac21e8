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
  QString metrics;                 // its metrics.jsonl
  std::vector<QString> timelines;  // of the last step that no fewer ranks recorded than others
  QString plan;                    // its plan.json, where this window started it; else empty
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
  Scenario scenario;                 // the run's model, cluster, stack and plan
  ClusterSpec cluster;               // its profile, refitted
  std::size_t figures = 0;           // how many of the profile the run has timings for
  calibration::StepComparison step;  // measured, and predicted with the profile before and after
};

// Refits the profile that the run's plan names (calibration/calibrate.hpp). Throws InputError
// with what the folder lacks, and where the run computed on another kind of device than the
// profile's (calibration/run_device.hpp).
RunCalibration calibrate_run(const QString& folder);

// A file in `folder`, which is not there yet, for the refitted profile.
QString free_profile_name(const QString& folder);

}  // namespace shardwright::gui
