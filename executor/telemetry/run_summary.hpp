// What the time of a run went into, for the last lines that it prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/runtime/rank_trainer.hpp"

namespace shardwright::executor {

// Rank 0 keeps it.
class RunSummary {
 public:
  void add(const StepReport& report);

  // Returns what took most of the time, and the shares of the others: "limited by computing (rank
  // 2, the busiest), 71 % of 12.3 s; waiting for communication and other ranks 20 %, checkpoints 9
  // %". A rank that computed far longer than most is named. `stalled_s` is the time that training
  // waited for checkpoints. Empty before the first step.
  std::string limit(double elapsed_s, double stalled_s) const;

 private:
  std::int64_t steps_ = 0;
  // Steps in which the time of each rank's kernels is known.
  std::int64_t timed_steps_ = 0;
  double step_s_ = 0.0, optimizer_s_ = 0.0;
  std::vector<double> rank_compute_s_;
};

}  // namespace shardwright::executor
