// A run of the executor, read back: its plan, its step times, and the timelines of the steps that
// were recorded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "core/spec/scenario.hpp"
#include "core/timeline/timeline.hpp"

namespace shardwright::calibration {

// One step of all ranks, by rank.
struct MeasuredStep {
  std::int64_t step = 0;
  std::vector<Timeline> ranks;
};

// The parts of a run's folder that are left out: those of other plans, under which it ran before it
// was resumed, and the remains of a run that was killed.
struct LeftOut {
  // Lines of metrics.jsonl.
  std::int64_t steps = 0;
  // Steps with timelines, and without such a line under this plan.
  std::int64_t recorded_steps = 0;
  // True if the last line of metrics.jsonl is cut off.
  bool torn_line = false;
};

// The devices that runs name.
inline constexpr const char* kCpuDevice = "cpu";
inline constexpr const char* kGpuDevice = "cuda";

struct MeasuredRun {
  // The name of its folder; readers of several may tell them apart by more of the path.
  std::string name;
  // The device that it computed on: "cpu" or "cuda"; empty if it is not known.
  std::string device;
  Scenario scenario;
  // Recorded steps of which every rank's timeline is there.
  std::vector<MeasuredStep> steps;
  // Times of all steps but the first ones, which warm up. Of a run on GPUs, where recording takes
  // time, recorded steps are left out if there are others.
  std::vector<Seconds> step_times;
  // The time by which recording its ops lengthens a step on a GPU: the difference of the medians of
  // recorded and other steps.
  Seconds recording_time;
  // The memory of a process; zero if it is not known.
  Bytes peak_memory;
  LeftOut left_out;

  // Returns the median.
  Seconds step_time() const;
};

// Reads `plan.json`, `metrics.jsonl` and `timeline-STEP-RANK.json` of the folder that
// `shardwright run --out` names: what was run under the plan that it was last resumed with. Throws
// InputError with what is wrong or missing.
MeasuredRun load_run(const std::filesystem::path& folder);

// What such a run reports of a step that it has trained.
struct TrainedStep {
  std::int64_t step = 0;
  // In nats per token; not a number where the run diverged.
  double loss = 0.0;
  // In tokens; zero where none was measured.
  double noise_scale = 0.0;
  // The tokens that the step trained; zero if the run does not say it.
  double tokens = 0.0;
  // The loss of samples that are held out from training; not a number where the step has none.
  double validation_loss = std::numeric_limits<double>::quiet_NaN();
};

// The steps of the run, under whatever plan, in their order. None if it has not trained any. Throws
// InputError with the lines that are wrong.
std::vector<TrainedStep> trained_steps(const std::filesystem::path& folder);

// A gradient noise scale, an estimate of the critical batch, and the name of the model whose
// gradients were measured.
struct MeasuredNoise {
  double tokens = 0.0;
  std::string model;
};

// The gradient noise scale that such a run measured last. Throws InputError if it measured none.
MeasuredNoise gradient_noise_scale(const std::filesystem::path& folder);

}  // namespace shardwright::calibration
