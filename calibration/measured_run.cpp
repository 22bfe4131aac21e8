#include "calibration/measured_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "calibration/error_statistics.hpp"
#include "core/base/json_lines.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/untrusted_file.hpp"
#include "core/spec/scenario.hpp"
#include "core/timeline/timeline_file.hpp"

namespace shardwright::calibration {
namespace {

namespace fs = std::filesystem;

// The share of the steps that warm up.
constexpr double kWarmupShare = 0.2;
constexpr const char* kNoiseKey = "gradient_noise_scale_tokens";

// Checks the file before it is opened: a pipe would wait for a writer.
void check_regular(const fs::path& file) {
  if (const std::string kind = kind_unless_regular(file); !kind.empty())
    throw InputError(file.string(), {{"", kind, "a file that shardwright run has written"}});
}

// The timeline of one rank, which brings its clock. Older ones do not say their step.
Timeline read_rank(const fs::path& file, std::int64_t step) {
  check_regular(file);
  Timeline timeline = read_timeline(read_json_file(file), file.string());
  if (timeline.ranks.size() != 1) {
    throw InputError(file.string(), {{"/ranks", fmt::format("{} ranks", timeline.ranks.size()),
                                      "the one rank that the file's name says"}});
  }
  if (timeline.step.value_or(step) != step) {
    throw InputError(file.string(), {{"/step", fmt::format("{}", *timeline.step),
                                      fmt::format("{}, as the file's name says", step)}});
  }
  return timeline;
}

// Files by step and rank.
using StepFiles = std::map<std::int64_t, std::map<std::int64_t, fs::path>>;

StepFiles timelines_in(const fs::path& folder) {
  StepFiles files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (const auto file = parse_timeline_name(entry.path().filename().string()))
      files[file->step][file->rank] = entry.path();
  }
  return files;
}

struct StepTime {
  std::int64_t step;
  Seconds time;
};

// Reads those of the steps of which every rank's timeline is there.
void read_steps(const fs::path& folder, std::span<const StepTime> run_steps, MeasuredRun& run) {
  std::set<std::int64_t> steps;
  for (const StepTime& each : run_steps) steps.insert(each.step);
  const std::int64_t world = run.scenario.plan.world_size();
  for (const auto& [step, ranks] : timelines_in(folder)) {
    if (!steps.contains(step)) {
      ++run.left_out.recorded_steps;
      continue;
    }
    const bool whole = static_cast<std::int64_t>(ranks.size()) == world &&
                       ranks.begin()->first == 0 && ranks.rbegin()->first == world - 1;
    if (!whole) continue;
    MeasuredStep& measured = run.steps.emplace_back();
    measured.step = step;
    for (const auto& [rank, file] : ranks) measured.ranks.push_back(read_rank(file, step));
  }
}

// Calls `read` with each line's object. A last line without an end that is no JSON is what a run
// that was killed leaves: it is left out, and true returned. Throws InputError with all bad lines.
bool read_lines(const fs::path& file, const std::function<void(ObjectReader&)>& read) {
  std::ifstream stream = open_json_lines(file.string());
  ProblemList problems(file.string());
  // The problem of the line before this one.
  std::optional<std::pair<std::string, InputError>> no_json;
  const auto add_line_before = [&] {
    if (no_json) problems.add_all(no_json->first, no_json->second);
    no_json.reset();
  };
  for_each_json(
      stream, file.string(),
      [&](const nlohmann::json& document, const std::string& place) {
        add_line_before();
        ProblemList of_line(file.string());
        ObjectReader object(document, "", of_line);
        read(object);
        try {
          of_line.throw_if_any();
        } catch (const InputError& error) {
          problems.add_all(place, error);
        }
      },
      [&](const std::string& place, const InputError& error) {
        add_line_before();
        no_json.emplace(place, error);
      });
  const bool is_torn = no_json && !ends_with_line_feed(file);
  if (!is_torn) add_line_before();
  problems.throw_if_any();
  return is_torn;
}

// The steps that were run under `program`, which is that of the run's plan. A line that does not
// say its program is of it.
std::vector<StepTime> read_metrics(const fs::path& file, const std::string& program,
                                   MeasuredRun& run) {
  std::vector<StepTime> steps;
  check_regular(file);
  run.left_out.torn_line = read_lines(file, [&](ObjectReader& line) {
    const std::int64_t step = line.integer("step", {0, IntegerRange{}.most});
    const Seconds time(line.number("step_s"));
    const Bytes peak(line.number_or("process_peak_bytes", 0.0, kNonNegative));
    if (line.text_or("program", program) != program) {
      ++run.left_out.steps;
      return;
    }
    run.device = line.text_or("device", run.device);
    steps.push_back({step, time});
    run.peak_memory = std::max(run.peak_memory, peak);
  });
  return steps;
}

Seconds median(const std::vector<Seconds>& times) {
  std::vector<double> values;
  for (const Seconds time : times) values.push_back(time.value());
  return values.empty() ? Seconds(0) : Seconds(quantile(values, 0.5));
}

void set_step_times(std::span<const StepTime> steps, MeasuredRun& run) {
  const auto is_recorded = [&run](std::int64_t step) {
    return std::any_of(run.steps.begin(), run.steps.end(),
                       [&](const MeasuredStep& recorded) { return recorded.step == step; });
  };
  std::vector<Seconds> recorded, others;
  for (const auto& [step, time] :
       steps.subspan(static_cast<std::size_t>(kWarmupShare * static_cast<double>(steps.size())))) {
    run.step_times.push_back(time);
    (is_recorded(step) ? recorded : others).push_back(time);
  }
  if (run.device != kGpuDevice || recorded.empty() || others.empty()) return;
  run.recording_time = std::max(Seconds(0), median(recorded) - median(others));
  run.step_times = std::move(others);
}

// The name of the folder, also where the path ends with a slash, or is "." or "..".
std::string own_name(const fs::path& folder) {
  // An error here means that this process's folder is not known.
  std::error_code unknown;
  const fs::path whole = (fs::absolute(folder, unknown) / "").lexically_normal();
  return whole.parent_path().filename().string();
}

fs::path plan_file(const fs::path& folder) {
  return folder / "plan.json";
}

nlohmann::json read_plan_document(const fs::path& folder) {
  std::error_code error;
  const fs::path file = plan_file(folder);
  if (!fs::exists(file, error)) {
    throw InputError(folder.string(),
                     {{"", "a folder without plan.json", "an output folder of shardwright run"}});
  }
  check_regular(file);
  return read_json_file(file.string());
}

}  // namespace

Seconds MeasuredRun::step_time() const {
  return median(step_times);
}

MeasuredRun load_run(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw InputError(folder.string(), {{"", "no folder", "an output folder of shardwright run"}});
  MeasuredRun run;
  run.name = own_name(folder);
  const nlohmann::json document = read_plan_document(folder);
  run.scenario = read_scenario(document, plan_file(folder).string());
  const std::vector<StepTime> steps =
      read_metrics(folder / "metrics.jsonl", program_fingerprint(document), run);
  read_steps(folder, steps, run);
  set_step_times(steps, run);
  ProblemList problems(folder.string());
  if (run.steps.empty()) {
    problems.add(
        "", "no step with a timeline of every rank",
        fmt::format(
            "timeline-STEP-RANK.json of ranks 0 to {}, which shardwright run writes for the "
            "steps that it is to record",
            run.scenario.plan.world_size() - 1));
  }
  if (run.step_times.empty()) {
    problems.add("metrics.jsonl",
                 run.left_out.steps == 0
                     ? "no steps"
                     : fmt::format("{} steps under other plans than plan.json", run.left_out.steps),
                 "at least one under plan.json");
  }
  problems.throw_if_any();
  return run;
}

std::vector<TrainedStep> trained_steps(const fs::path& folder) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const fs::path file = folder / "metrics.jsonl";
  std::vector<TrainedStep> steps;
  check_regular(file);
  if (!fs::exists(file)) return steps;
  read_lines(file, [&](ObjectReader& line) {
    // Either is null where it is not finite.
    const bool diverged = line.value().contains("gradient_norm") && !line.peek("gradient_norm");
    TrainedStep step;
    step.step = line.integer("step", {0, IntegerRange{}.most});
    step.loss = diverged ? kNone : line.number_or("loss", kNone);
    step.validation_loss = line.number_or("validation_loss", kNone);
    step.noise_scale = line.number_or(kNoiseKey, 0.0);
    step.tokens = std::round(line.number_or("tokens_per_s", 0.0, kNonNegative) *
                             line.number_or("step_s", 0.0, kNonNegative));
    steps.push_back(step);
  });
  return steps;
}

MeasuredNoise gradient_noise_scale(const fs::path& folder) {
  MeasuredNoise noise;
  for (const TrainedStep& step : trained_steps(folder)) {
    if (step.noise_scale > 0.0) noise.tokens = step.noise_scale;
  }
  if (noise.tokens > 0.0) {
    noise.model = read_scenario(read_plan_document(folder), plan_file(folder).string()).model.name;
    return noise;
  }
  throw InputError((folder / "metrics.jsonl").string(),
                   {{"", fmt::format("no line with {}", kNoiseKey),
                     "a run whose ranks know their own gradients: data-parallel "
                     "replicas without ZeRO-2 or 3"}});
}

}  // namespace shardwright::calibration
