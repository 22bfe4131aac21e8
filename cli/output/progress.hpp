// The progress of a long calculation as a line on standard error.
#pragma once

#include <chrono>
#include <cstddef>
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
  ~ProgressLine() { erase(); }

  // `share` is the part of the work that is done, 0 to 1. The line never goes back, and shows its
  // end at once.
  void show(double share, const std::string& text);

  // The work is done, and other output follows.
  void finish();

 private:
  void erase();

  using Clock = std::chrono::steady_clock;

  bool enabled_;
  const Embedding* host_;
  std::mutex mutex_;
  Clock::time_point last_;
  double most_ = 0.0;
  std::string text_;
  bool drawn_ = false;
};

// Shows the progress of a search, or of several one after the other, while the object exists.
class SearchProgressLine {
 public:
  SearchProgressLine(bool enabled, planner::PlanRequest& request, std::size_t searches = 1);
  SearchProgressLine(const SearchProgressLine&) = delete;
  SearchProgressLine& operator=(const SearchProgressLine&) = delete;
  ~SearchProgressLine() { request_.progress = nullptr; }

  // Another of the searches is done.
  void end_search();

 private:
  double share_of(double of_search) const;

  planner::PlanRequest& request_;
  ProgressLine line_;
  double searches_, done_ = 0.0;
  std::string text_;
};

}  // namespace shardwright::cli
