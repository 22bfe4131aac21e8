// The progress of a search as a line on standard error.
#pragma once

#include "cli/progress.hpp"
#include "planner/search.hpp"

namespace shardwright::cli {

// Listens to a request's progress while it lives.
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
