// A published training run: a scenario, its tokens, and what the whole of it took.
// docs/formats/measurements.md describes the files.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/spec/run_spec.hpp"
#include "validation/measurement.hpp"

namespace shardwright::validation {

// What the GPU-hours of a source contain.
enum class CountedHours : std::uint8_t {
  // The whole run, with its failures and pauses.
  Run,
  // Steps alone, as where step times were added up.
  Steps,
};
constexpr auto enum_names(CountedHours) {
  return std::array{"run", "steps"};
}

// The figures that the source prints; 0 where it has none.
struct MeasuredRun {
  double gpu_hours = 0.0;
  double wall_days = 0.0;
  CountedHours counted = CountedHours::Run;
  // Of the steps of the plan itself, without those of other stages.
  double step_s = 0.0, tokens_per_s_per_gpu = 0.0;
  double goodput = 0.0;
  // Interruptions, planned ones among them, in so many days of the run.
  double interruptions = 0.0, interruption_days = 0.0;
  // Those of them that nobody planned; 0 where the source does not tell them apart.
  double unexpected = 0.0;
  // Training time between two checkpoints, seconds.
  double checkpoint_interval_s = 0.0;

  bool operator==(const MeasuredRun&) const = default;
};

// Another publication of the same run, with other figures.
struct OtherFigure {
  double gpu_hours = 0.0;
  std::string where;

  bool operator==(const OtherFigure&) const = default;
};

struct PublishedRun {
  // Its source and its scenario; without measured figures of a step.
  Measurement setup;
  double tokens = 0.0;
  // With the stages of the row.
  RunSpec run;
  MeasuredRun measured;
  std::vector<OtherFigure> others;

  // GPUs of the plan.
  std::int64_t gpus() const;
  // As printed, or else those of the days on all GPUs.
  double gpu_hours() const;
};

// The JSON Schema of a line.
nlohmann::ordered_json published_run_schema();

// The shipped file of published runs.
std::string shipped_runs_file();

// Reads all runs of a file of JSON lines. Throws InputError with all problems of the file, each
// with its line and JSON pointer.
std::vector<PublishedRun> read_published_runs(const std::string& file);

// True if the first line with tokens or a scenario has tokens, as published runs do and
// measurements of steps do not. False for a file that cannot be read.
bool holds_published_runs(const std::string& file);

// Returns nothing if the file holds measurements of steps. Throws InputError if no run of the
// file has this id.
std::optional<PublishedRun> find_published_run(const std::string& file, const std::string& id);

// Reads the lines of a stream; `source` names it in errors.
std::vector<PublishedRun> read_published_runs(std::istream& stream, const std::string& source);

}  // namespace shardwright::validation
