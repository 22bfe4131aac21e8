// A run's metrics: one line of JSON for each step, and a progress line for people.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/units.hpp"
#include "core/spec/scenario.hpp"
#include "executor/runtime/rank_trainer.hpp"
#include "executor/telemetry/noise_scale.hpp"
#include "executor/telemetry/prometheus_file.hpp"

namespace shardwright::executor {

// What a run's metrics are relative to.
struct RunFigures {
  double tokens_per_step = 0.0;
  double small_batch_tokens = 0.0;  // of one data-parallel rank
  Flop flop_per_step;               // that the model's formula counts
  FlopPerSecond peak;               // of all ranks' devices, as the plan's cluster says
  std::string device;               // "cpu", "cuda"; empty: lines do not say it
  std::string program;              // program_sum of what is run
};

// Of the device that rank 0 computes on.
struct MemoryUse {
  Bytes tensor_peak;   // as the program counts tensors
  Bytes process_peak;  // all that the process has taken (Kernels::memory_taken); 0: not known
};

MemoryUse memory_of(const RankTrainer& trainer, const Kernels& kernels);

RunFigures figures_of(const Scenario& scenario, const std::string& device);

class MetricsLog {
 public:
  // Keeps the lines of an earlier file whose steps lie before `first_step`; `noise` is of these
  // steps. Throws InputError where a line is broken (earlier_metrics.hpp), RuntimeFailure if the
  // file cannot be written.
  MetricsLog(const std::filesystem::path& file, const RunFigures& figures, std::int64_t first_step,
             const NoiseMeans& noise = {});
  // As `finish`, where a run has failed; a failure to write is not told.
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  // {"step": 0, "loss": 5.54, "gradient_norm": 1.2, "learning_rate": 3e-4, "step_s": 0.01,
  //  "tokens_per_s": 1e5, "mfu": 0.5, "forward_s": 0.003, "backward_s": 0.005,
  //  "optimizer_s": 0.001, "communication_s": 0.002, "tensor_peak_bytes": 1e6,
  //  "process_peak_bytes": 5e7, "gradient_noise_scale_tokens": 3e4, "device": "cpu",
  //  "program": "…"}
  // each line at once; the noise scale once it is known, the peak of the process where it is; the
  // program as program_sum tells apart what a folder's steps were run under. The same goes to
  // `metrics.prom` beside the file, for Prometheus' node exporter, at most once a second. Throws
  // RuntimeFailure.
  //
  // `checkpoint_stall_s`: that training stood still for checkpoints since the step before; 0: there
  // was none, and the line has no such figure.
  void write(const StepReport& report, const MemoryUse& memory, double checkpoint_stall_s = 0.0);
  // `metrics.prom` of the last step, whenever it was written.
  void finish();

  // Of the steps so far, for who goes on after them.
  const NoiseMeans& noise() const { return noise_.means(); }

  // The last line of the earlier file was cut off, and is left out.
  bool cut_off() const { return cut_off_; }
  // The steps before the first one that it lacks, as missing_steps says it.
  const std::string& missing() const { return missing_; }

 private:
  std::ofstream stream_;
  std::filesystem::path file_;
  RunFigures figures_;
  NoiseScale noise_;
  PrometheusFile prometheus_;
  bool cut_off_ = false;
  std::string missing_;
};

// `metrics.prom` of the last whole line of metrics.jsonl, `file`: for those who outlive a process
// that was ended before it could write it. Nothing where there is no such line. Throws
// RuntimeFailure.
void write_prometheus_of_last_line(const std::filesystem::path& file);

// On standard error, at most ten times a second, where that is a terminal.
class RunProgress {
 public:
  RunProgress(bool wanted, std::int64_t steps);
  ~RunProgress();

  void show(const StepReport& report);

 private:
  bool shown_ = false;
  bool wanted_;
  std::int64_t steps_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace shardwright::executor
