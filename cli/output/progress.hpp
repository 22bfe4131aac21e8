// The progress of a long calculation as a line on standard error.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "cli/output/embedding.hpp"
#include "planner/search.hpp"

namespace shardwright::cli {

// A line that is redrawn at most ten times a second and erased at the end; an embedded command
// tells the program around it instead. Threads may share it. A disabled one prints nothing.
class ProgressLine {
 public:
  explicit ProgressLine(bool enabled) : enabled_(enabled), host_(current_embedding()) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  // `share` is the part of the work that is done, 0 to 1.
  void show(double share, const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;

  bool enabled_;
  const Embedding* host_;
  std::mutex mutex_;
  Clock::time_point last_;
  bool drawn_ = false;
};

// Shows the progress of a search while the object exists.
class SearchProgressLine {
 public:
  SearchProgressLine(bool enabled, planner::PlanRequest& request);
  SearchProgressLine(const SearchProgressLine&) = delete;
  SearchProgressLine& operator=(const SearchProgressLine&) = delete;
  ~SearchProgressLine() { request_.progress = nullptr; }

 private:
  planner::PlanRequest& request_;
  ProgressLine line_;
};

}  // namespace shardwright::cli
