// What the files of `import` hold.
#pragma once

#include <string>
#include <vector>

#include "calibration/collective_timings.hpp"
#include "calibration/traces/memory_snapshot.hpp"
#include "calibration/traces/straggler_analysis.hpp"
#include "calibration/traces/trace.hpp"
#include "calibration/traces/training_log.hpp"
#include "cli/commands/launched_plans.hpp"
#include "cli/options/scenario_options.hpp"

namespace shardwright::cli {

struct Recordings {
  std::vector<calibration::Trace> traces;
  std::vector<calibration::TrainingLog> logs;
  std::vector<calibration::StragglerAnalysis> jobs;
  std::vector<LaunchedPlan> plans;
  std::vector<calibration::MemorySnapshot> memory;
  std::vector<calibration::CollectiveFile> collectives;
};

// `options` has the cluster and stack of launches, `parameters` those of launch scripts. Throws
// InputError with the problems of all files, and ReadingStopped after Ctrl-C.
Recordings read_recordings(const std::vector<std::string>& files, const ScenarioOptions& options,
                           const planner::ScriptParameters& parameters, bool shows_progress);

// The paths with the traces of a folder in its place, and without files that stand among them
// before by another name: they would count twice, so that a message names them. Folders of
// checkpoints stay.
std::vector<std::string> files_to_read(const std::vector<std::string>& paths);

}  // namespace shardwright::cli
