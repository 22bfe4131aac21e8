// A run's metrics: one line of JSON for each step, and a progress line for people.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "core/base/units.hpp"
#include "executor/runtime/rank_trainer.hpp"

namespace shardwright::executor {

class MetricsLog {
 public:
  // Keeps the lines of an earlier file whose steps lie before `first_step`. Throws RuntimeFailure
  // if it cannot be written.
  MetricsLog(const std::filesystem::path& file, std::int64_t tokens_per_step,
             std::int64_t first_step);

  // {"step": 0, "loss": 5.54, "gradient_norm": 1.2, "learning_rate": 3e-4, "step_s": 0.01,
  //  "tokens_per_s": 1e5, "tensor_peak_bytes": 1e6}, each line at once. Throws RuntimeFailure.
  void write(const StepReport& report, Bytes tensor_peak);

 private:
  std::ofstream stream_;
  std::filesystem::path file_;
  double tokens_per_step_;
};

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
