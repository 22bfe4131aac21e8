// A run of the executor, read back: its plan, its step times, and the timelines of the steps that
// were recorded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/spec/scenario.hpp"
#include "core/timeline/timeline.hpp"

namespace shardwright::calibration {

// What all ranks did in one step, by rank.
struct MeasuredStep {
  std::int64_t step = 0;
  std::vector<Timeline> ranks;
};

// What a run's folder holds of other plans, under which it was before it was resumed, and what a
// run that was killed leaves.
struct LeftOut {
  std::int64_t steps = 0;           // lines of metrics.jsonl
  std::int64_t recorded_steps = 0;  // with timelines, and without such a line under this plan
  bool torn_line = false;           // the last one of metrics.jsonl is cut off
};

// What runs on CPUs say of themselves.
inline constexpr const char* kCpuDevice = "cpu";

struct MeasuredRun {
  std::string name;    // of its folder; who reads several may tell them apart by more of the path
  std::string device;  // that it computed on: "cpu", "cuda"; empty: not said
  Scenario scenario;
  std::vector<MeasuredStep> steps;  // recorded ones, of which every rank's timeline is there
  std::vector<Seconds> step_times;  // of all steps but the first ones, which warm up
  Bytes peak_memory;                // of a process; zero: not known
  LeftOut left_out;

  Seconds step_time() const;  // the median
};

// Reads `plan.json`, `metrics.jsonl` and `timeline-STEP-RANK.json` of the folder that
// `shardwright run --out` names: what was run under the plan that it was last resumed with. Throws
// InputError with what is wrong or missing.
MeasuredRun load_run(const std::filesystem::path& folder);

}  // namespace shardwright::calibration
