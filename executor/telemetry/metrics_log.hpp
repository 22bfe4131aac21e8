// A run's metrics: one line of JSON per step, and a line of progress on the terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/base/units.hpp"
#include "core/spec/scenario.hpp"
#include "executor/runtime/rank_trainer.hpp"
#include "executor/telemetry/noise_scale.hpp"
#include "executor/telemetry/prometheus_file.hpp"

namespace shardwright::executor {

// Constants of a run that its metrics relate to.
struct RunFigures {
  double tokens_per_step = 0.0;
  double small_batch_tokens = 0.0;
  // Computed by the model's formula.
  Flop flop_per_step;
  // Peak of all devices together, from the plan's cluster.
  FlopPerSecond peak;
  // Empty omits it.
  std::string device;
  // program_fingerprint of the run.
  std::string program;
};

// Memory on rank 0's device.
struct MemoryUse {
  // Peak of the tensors by the program's count.
  Bytes tensor_peak;
  // Memory of the process (Kernels::memory_used); 0 if unknown.
  Bytes process_peak;
};

MemoryUse memory_of(const RankTrainer& trainer, const Kernels& kernels);

RunFigures figures_of(const Scenario& scenario, const std::string& device);

// Calls `take` with the step and text of each line of metrics.jsonl. Skips a truncated last line
// (no JSON and no line feed after it), which a killed run may leave, and then returns true. Does
// nothing if the file does not exist. Throws InputError if it is no regular file, and with up to a
// hundred line numbers of other lines that are neither empty nor an object with a step.
bool for_each_earlier_step(
    const std::filesystem::path& file,
    const std::function<void(std::int64_t step, const std::string& line)>& take);

class MetricsLog {
 public:
  // Keeps the lines of an earlier file before `first_step`; `noise` holds the running means of
  // these steps. Throws InputError for a broken line (for_each_earlier_step), RuntimeFailure if the
  // file cannot be written.
  MetricsLog(const std::filesystem::path& file, const RunFigures& figures, std::int64_t first_step,
             const NoiseMeans& noise = {});
  // Finishes after a failure, and ignores errors.
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  // {"step": 0, "loss": 5.54, "gradient_norm": 1.2, "learning_rate": 3e-4, "step_s": 0.01,
  //  "tokens_per_s": 1e5, "mfu": 0.5, "forward_s": 0.003, "backward_s": 0.005,
  //  "optimizer_s": 0.001, "communication_s": 0.002, "tensor_peak_bytes": 1e6,
  //  "process_peak_bytes": 5e7, "gradient_noise_scale_tokens": 3e4, "device": "cpu",
  //  "program": "…", "unix_time_s": 1.8e9, "rank_compute_s": [0.008, 0.008]}
  //
  // Writes such a line at once. "validation_loss" stands in lines of steps after which the run
  // validated. The noise scale and the peak of the process appear once they are known; "program" is
  // program_fingerprint, which shows under which plan a step was run. "slowest_rank" and
  // "slowest_rank_slowdown" stand there if the run watches the ranks' speeds, and the time of each
  // rank's kernels in the forward and the backward pass if it is known. The same figures go
  // to `metrics.prom` beside the file, for Prometheus' node exporter, at most once a second.
  // Throws RuntimeFailure if the line cannot be written: the file then holds the lines before, and
  // the next call tries to go on with it.
  //
  // `checkpoint_stall_s` is the time that training waited for checkpoints since the previous step;
  // the line has it unless it is 0.
  void write(const StepReport& report, const MemoryUse& memory, double checkpoint_stall_s = 0.0);
  // Writes the last step to `metrics.prom` regardless of the interval.
  void finish();

  // The running means of the steps so far, for checkpoints.
  const NoiseMeans& noise() const { return noise_.means(); }

  // True if the last line of the earlier file was truncated and is left out.
  bool truncated() const { return truncated_; }
  // The missing steps before `first_step`: "steps 5 to 19", "step 3", "steps 0, 4 to 6, 8 and
  // others after them"; empty if none is missing.
  const std::string& missing() const { return missing_; }

 private:
  // Adds a complete line to the file, or leaves the file as it is. Throws RuntimeFailure.
  void append(const std::string& line);

  std::ofstream stream_;
  // The size of the complete lines in the file.
  std::uintmax_t bytes_ = 0;
  std::filesystem::path file_;
  RunFigures figures_;
  NoiseScale noise_;
  PrometheusFile prometheus_;
  bool truncated_ = false;
  std::string missing_;
};

// A line on standard error if that is a terminal. A text that comes within `between` of the one
// that is shown is left out.
class ProgressLine {
 public:
  explicit ProgressLine(bool wanted, std::chrono::milliseconds between = {});
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& text);

 private:
  bool wanted_, shown_ = false;
  std::chrono::milliseconds between_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace shardwright::executor
