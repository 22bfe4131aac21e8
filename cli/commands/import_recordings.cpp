#include "cli/commands/import_recordings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "calibration/collective_timings.hpp"
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

// False of JSON that is no trace, such as a plan or a report that lies beside the traces.
bool may_be_trace(const std::string& file) {
  constexpr std::uintmax_t kSmall = 1U << 20U;
  std::error_code none;
  if (!file.ends_with(".json") || std::filesystem::file_size(file, none) > kSmall) return true;
  std::ifstream stream(file, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  return text.find("\"traceEvents\"") != std::string::npos ||
         text.find_first_not_of(" \t\r\n") == text.find('[') ||
         calibration::is_collective_file(file);
}

bool is_named_as_trace(const std::string& file) {
  return file.ends_with(".json") || file.ends_with(".json.gz") || file.ends_with(".sqlite");
}

// Inspector writes a file for each process.
bool is_inspector_log(const std::string& file) {
  return file.ends_with(".log") && calibration::is_collective_file(file);
}

// The recordings in a folder, those of rank 10 behind those of rank 2, and of anything else the
// path itself.
std::vector<std::string> recordings_of(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_directory(path, none) || file_of_checkpoint(path)) return {path};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path, none)) {
    const std::string file = entry.path().string();
    if (entry.is_regular_file(none) &&
        ((is_named_as_trace(file) && may_be_trace(file)) || is_inspector_log(file)))
      files.push_back(file);
  }
  if (files.empty()) return {path};
  std::sort(files.begin(), files.end(), [](const std::string& a, const std::string& b) {
    return strverscmp(a.c_str(), b.c_str()) < 0;
  });
  return files;
}

// The folders within a folder that hold recordings, as PyTorch's handler for TensorBoard and
// torchtitan make one for each profiled iteration.
std::string inner_folders_text(const std::string& folder) {
  std::vector<std::string> inner;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (entry.is_directory(none) && recordings_of(entry.path().string()).front() != entry.path())
      inner.push_back(entry.path().filename().string());
  std::ranges::sort(inner);
  return inner.empty() ? "" : fmt::format("; its folders {} have some", fmt::join(inner, ", "));
}

void add_file(const std::string& path, const ScenarioOptions& options,
              const planner::ScriptParameters& parameters, const ReadingWatch& watch,
              Recordings& recordings) {
  const std::string file = file_of_checkpoint(path).value_or(path);
  std::error_code none;
  if (std::filesystem::is_directory(file, none))
    throw InputError(
        file, {{"", "a folder without traces and without a checkpoint" + inner_folders_text(file),
                "a file, a folder of traces (*.json, *.json.gz, *.sqlite) or of NCCL's "
                "Inspector (*.log), or a checkpoint's folder with common.pt, "
                "model_optim_rng.pt or run_config.yaml"}});
  if (calibration::is_pickle_file(file)) return add_pickle(file, options, watch, recordings);
  if (calibration::is_collective_file(file)) {
    recordings.collectives.push_back(calibration::read_collective_file(file, watch));
    return;
  }
  std::optional<planner::LaunchArguments> launch;
  try {
    launch = find_launch(file, parameters);
  } catch (const InputError&) {
    if (!add_recording_if_any(file, watch, recordings)) throw;
    return;
  }
  if (launch)
    add_launch(*launch, options, watch, recordings);
  else
    add_recording(calibration::read_recording(file, watch), recordings);
}

std::uintmax_t bytes_of(const std::string& file) {
  std::error_code none;
  const std::uintmax_t bytes = std::filesystem::file_size(file, none);
  return none ? 0 : bytes;
}

}  // namespace

Recordings read_recordings(const std::vector<std::string>& files, const ScenarioOptions& options,
                           const planner::ScriptParameters& parameters, bool shows_progress) {
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
      add_file(file, options, parameters, watch, recordings);
      return true;
    });
  problems.throw_if_any();
  return recordings;
}

std::vector<std::string> files_to_read(const std::vector<std::string>& paths) {
  std::vector<std::string> distinct;
  std::set<std::filesystem::path> known;
  for (const std::string& path : paths)
    for (const std::string& file : recordings_of(path)) {
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
