// A line on standard error that tells how far a long calculation is.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

namespace shardwright::cli {

// Redraws itself at most ten times a second and goes away when it is destroyed. Threads may share
// it. A disabled one prints nothing.
class ProgressLine {
 public:
  explicit ProgressLine(bool enabled) : enabled_(enabled) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  // `share`: of the work that is done, 0 to 1.
  void show(double share, const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;

  bool enabled_;
  std::mutex mutex_;
  Clock::time_point last_;
  bool drawn_ = false;
};

}  // namespace shardwright::cli
