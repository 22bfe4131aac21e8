#include "cli/commands/import_recordings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "calibration/traces/pickle_file.hpp"
#include "calibration/traces/trace_file.hpp"
#include "cli/commands/interrupt.hpp"
#include "cli/options/scenario_parts.hpp"
#include "cli/output/progress.hpp"
#include "core/base/error.hpp"
#include "core/base/large_json_file.hpp"
#include "core/base/standard_streams.hpp"
#include "planner/import/checkpoint_arguments.hpp"

namespace shardwright::cli {
namespace {

void add_recording(calibration::Recording recording, Recordings& recordings) {
  if (auto* trace = std::get_if<calibration::Trace>(&recording))
    recordings.traces.push_back(std::move(*trace));
  else if (const auto* job = std::get_if<calibration::JobRecord>(&recording))
    recordings.jobs.push_back(calibration::analyse_stragglers(*job));
  else
    recordings.logs.push_back(std::move(std::get<calibration::TrainingLog>(recording)));
}

bool add_recording_if_any(const std::string& file, const ReadingWatch& watch,
                          Recordings& recordings) {
  try {
    add_recording(calibration::read_recording(file, watch), recordings);
  } catch (const InputError&) {
    return false;
  }
  return true;
}

// A log may begin with the command that a script printed, and its arguments may be those of another
// kind of model: its steps are read all the same. Without steps the arguments have to be a plan.
void add_launch(const planner::LaunchArguments& launch, const ScenarioOptions& options,
                const ReadingWatch& watch, Recordings& recordings) {
  const bool has_steps = add_recording_if_any(launch.source, watch, recordings);
  try {
    recordings.plans.push_back(launched_plan(launch, options));
  } catch (const InputError& error) {
    if (!has_steps) throw;
    print_message(
        fmt::format("shardwright import: no plan from the arguments of the log: {}", error.what()));
  }
}

void add_pickle(const std::string& file, const ScenarioOptions& options, const ReadingWatch& watch,
                Recordings& recordings) {
  const PickleDocument document = calibration::read_pickle_file(file, watch);
  if (const auto launch = planner::checkpoint_arguments(document.root, file))
    recordings.plans.push_back(launched_plan(*launch, options));
  else
    recordings.memory.push_back(calibration::memory_snapshot(document.root, file));
}

void add_file(const std::string& path, const ScenarioOptions& options, const ReadingWatch& watch,
              Recordings& recordings) {
  const std::string file = file_of_checkpoint(path).value_or(path);
  std::error_code none;
  if (std::filesystem::is_directory(file, none))
    throw InputError(file, {{"", "a folder without traces and without a checkpoint",
                             "a file, a folder of traces (*.json, *.json.gz, *.sqlite), or a "
                             "checkpoint's folder with common.pt, model_optim_rng.pt or "
                             "run_config.yaml"}});
  if (calibration::is_pickle_file(file)) return add_pickle(file, options, watch, recordings);
  if (calibration::is_collective_file(file)) {
    recordings.collectives.push_back(calibration::read_collective_file(file, watch));
    return;
  }
  std::optional<planner::LaunchArguments> launch;
  try {
    launch = find_launch(file);
  } catch (const InputError&) {
    if (!add_recording_if_any(file, watch, recordings)) throw;
    return;
  }
  if (launch)
    add_launch(*launch, options, watch, recordings);
  else
    add_recording(calibration::read_recording(file, watch), recordings);
}

// The traces of a folder by their names, and of anything else the path itself.
std::vector<std::string> traces_of(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_directory(path, none) || file_of_checkpoint(path)) return {path};
  std::vector<std::string> traces;
  for (const auto& entry : std::filesystem::directory_iterator(path, none)) {
    const std::string file = entry.path().string();
    if (entry.is_regular_file(none) &&
        (file.ends_with(".json") || file.ends_with(".json.gz") || file.ends_with(".sqlite")))
      traces.push_back(file);
  }
  if (traces.empty()) return {path};
  std::sort(traces.begin(), traces.end());
  return traces;
}

std::uintmax_t bytes_of(const std::string& file) {
  std::error_code none;
  const std::uintmax_t bytes = std::filesystem::file_size(file, none);
  return none ? 0 : bytes;
}

}  // namespace

Recordings read_recordings(const std::vector<std::string>& files, const ScenarioOptions& options,
                           bool shows_progress) {
  ProblemList problems("shardwright import");
  Recordings recordings;
  const InterruptWatch interrupt;
  ProgressLine line(shows_progress);
  double all = 0.0, read = 0.0;
  for (const std::string& file : files) all += static_cast<double>(bytes_of(file));
  for (const std::string& file : files)
    read_part("", problems, [&] {
      const ReadingWatch watch{[&](std::uintmax_t bytes) {
                                 read += static_cast<double>(bytes);
                                 line.show(read / std::max(1.0, all), "reading " + file);
                               },
                               interrupt.token()};
      add_file(file, options, watch, recordings);
      return true;
    });
  problems.throw_if_any();
  return recordings;
}

std::vector<std::string> files_to_read(const std::vector<std::string>& paths) {
  std::vector<std::string> distinct;
  std::set<std::filesystem::path> known;
  for (const std::string& path : paths)
    for (const std::string& file : traces_of(path)) {
      std::error_code error;
      const std::filesystem::path place = std::filesystem::weakly_canonical(file, error);
      if (known.insert(error ? std::filesystem::path(file) : place).second)
        distinct.push_back(file);
      else
        print_message(fmt::format("shardwright import: {} is given twice and counts once", file));
    }
  return distinct;
}

}  // namespace shardwright::cli
