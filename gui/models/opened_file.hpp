// Files that the window opens, recognised by their content.
#pragma once

#include <QString>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "calibration/calibrate.hpp"
#include "core/base/large_json_file.hpp"
#include "core/spec/batch_spec.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/run_spec.hpp"
#include "core/spec/scenario.hpp"
#include "core/timeline/timeline.hpp"
#include "gui/models/plan_set.hpp"
#include "gui/models/scenario_choice.hpp"
#include "gui/models/trace_comparison.hpp"
#include "gui/models/tuning_results.hpp"

namespace shardwright::gui {

// A folder that `shardwright run --out` wrote.
struct RunFolder {
  QString folder;
  QString metrics;
  // The timelines of the last step that the largest number of ranks recorded.
  std::vector<QString> timelines;
  // The path of its plan.json if the window started the run, else empty.
  QString plan;
};

// Returns none if the folder has no metrics.
std::optional<RunFolder> find_run(const QString& folder);

// Reads the recorded step with the spans of all ranks; null if none was recorded. Throws
// InputError, and ReadingStopped if `watch` asks for it.
std::shared_ptr<const Timeline> read_measured_step(const RunFolder& run,
                                                   const ReadingWatch& watch = {});

// Says why `folder` teaches nothing about its cluster; empty if it may. Reads file names and the
// plan.
QString calibration_obstacle(const QString& folder);

struct RunCalibration {
  Scenario scenario;
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

// Returns the name of a new file in `folder` for the refitted profile.
QString free_profile_name(const QString& folder);

struct OpenedFile {
  QString path;
  std::variant<Scenario, PlanSetPointer, ClusterSpec, ModelSpec, std::shared_ptr<const Timeline>,
               RunFolder, TracedRun, TuningResults, RunSpec, BatchSpec, ScenarioChoice>
      content;
};

// The size of the largest file that is read. A timeline of a million spans has some 300 MB, and so
// has a result of 100,000 plans.
inline constexpr std::uintmax_t kMostFileBytes = 1ULL << 30;

// "plan", "search result", "cluster", "model", "timeline", "run folder", "trace",
// "tuning", "run profile", "batch profile", "scenario".
QString kind_of(const OpenedFile& file);

// Opens a plan file, the output of `plan --json`, a cluster, a run or batch profile, a model (or a
// Hugging Face config.json), a timeline (of a run, or of simulate --timeline), the folder of a run
// or of a tuning (or its tuning.json), or the trace of another program (what `shardwright import`
// reads). Throws InputError with every problem, for unknown documents too, and ReadingStopped if
// `watch` asks for it.
OpenedFile open_file(const QString& path, const ReadingWatch& watch = {});

}  // namespace shardwright::gui
