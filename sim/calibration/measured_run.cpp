#include "sim/calibration/measured_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/json_reader.hpp"
#include "sim/validation/error_statistics.hpp"
#include "sim/validation/json_lines.hpp"

namespace shardwright::sim {
namespace {

namespace fs = std::filesystem;

constexpr double kWarmupShare = 0.2;  // of the steps

// "timeline-STEP-RANK.json"
struct TimelineName {
  std::int64_t step = 0, rank = 0;
};

std::optional<TimelineName> parse_name(const std::string& file) {
  constexpr std::string_view kPrefix = "timeline-", kSuffix = ".json";
  if (!file.starts_with(kPrefix) || !file.ends_with(kSuffix)) return std::nullopt;
  TimelineName name;
  const char* end = file.data() + file.size() - kSuffix.size();
  const auto step = std::from_chars(file.data() + kPrefix.size(), end, name.step);
  if (step.ec != std::errc() || step.ptr == end || *step.ptr != '-') return std::nullopt;
  const auto rank = std::from_chars(step.ptr + 1, end, name.rank);
  if (rank.ec != std::errc() || rank.ptr != end) return std::nullopt;
  return name;
}

// The timeline of one rank, which brings its clock.
Timeline read_rank(const fs::path& file) {
  Timeline timeline = read_timeline(read_json_file(file), file.string());
  if (timeline.ranks.size() != 1) {
    throw InputError(file.string(), {{"/ranks", fmt::format("{} ranks", timeline.ranks.size()),
                                      "the one rank that the file's name says"}});
  }
  return timeline;
}

std::vector<MeasuredStep> read_steps(const fs::path& folder, std::int64_t world) {
  std::map<std::int64_t, std::map<std::int64_t, fs::path>> files;  // by step and rank
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (const auto name = parse_name(entry.path().filename().string()))
      files[name->step][name->rank] = entry.path();
  }
  std::vector<MeasuredStep> steps;
  for (const auto& [step, ranks] : files) {
    const bool whole = static_cast<std::int64_t>(ranks.size()) == world &&
                       ranks.begin()->first == 0 && ranks.rbegin()->first == world - 1;
    if (!whole) continue;
    MeasuredStep& measured = steps.emplace_back();
    measured.step = step;
    for (const auto& [rank, file] : ranks) measured.ranks.push_back(read_rank(file));
  }
  return steps;
}

void read_metrics(const fs::path& file, MeasuredRun& run) {
  std::vector<Seconds> times;
  for_each_json_line(file.string(), [&](ObjectReader& line) {
    times.emplace_back(line.number("step_s"));
    run.peak_memory =
        std::max(run.peak_memory, Bytes(line.number_or("process_peak_bytes", 0.0, kNonNegative)));
  });
  const auto warmup = static_cast<std::ptrdiff_t>(kWarmupShare * static_cast<double>(times.size()));
  run.step_times.assign(times.begin() + warmup, times.end());
}

}  // namespace

Seconds MeasuredRun::step_time() const {
  std::vector<double> values;
  for (const Seconds time : step_times) values.push_back(time.value());
  return values.empty() ? Seconds(0) : Seconds(quantile(values, 0.5));
}

MeasuredRun load_run(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw InputError(folder.string(), {{"", "no folder", "the --out folder of shardwright run"}});
  MeasuredRun run;
  run.name = fs::path(folder / "").parent_path().filename().string();
  run.scenario = load_scenario((folder / "plan.json").string());
  read_metrics(folder / "metrics.jsonl", run);
  run.steps = read_steps(folder, run.scenario.plan.world_size());
  ProblemList problems(folder.string());
  if (run.steps.empty()) {
    problems.add("", "no step with a timeline of every rank",
                 fmt::format("timeline-STEP-RANK.json of ranks 0 to {} (shardwright run "
                             "--timeline-steps)",
                             run.scenario.plan.world_size() - 1));
  }
  if (run.step_times.empty()) problems.add("metrics.jsonl", "no steps", "at least one");
  problems.throw_if_any();
  return run;
}

}  // namespace shardwright::sim
