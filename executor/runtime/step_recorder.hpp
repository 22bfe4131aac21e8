// Records the times of a step's ops as a measured Timeline.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

#include "core/program/program.hpp"
#include "core/program/rank_grid.hpp"
#include "core/timeline/timeline.hpp"

namespace shardwright::executor {

class StepRecorder {
 public:
  using Clock = std::chrono::steady_clock;

  // Times start at construction.
  StepRecorder(const Plan& plan, std::int64_t rank);

  // Several threads may call it.
  void add(const Op& op, const Call& call, Clock::time_point start, Clock::time_point end);

  // `time` is what the host took to issue all ops of the step.
  void issued(Clock::duration time);

  // Returns the spans in the order of their starts.
  Timeline take();

 private:
  RankGrid grid_;
  std::int32_t rank_;
  Clock::time_point origin_;
  std::mutex mutex_;
  Timeline timeline_;
};

}  // namespace shardwright::executor
