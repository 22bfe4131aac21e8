// Two scenarios side by side: what differs between them, and what that does to the step.
#pragma once

#include <string>
#include <vector>

#include "core/spec/scenario.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::planner {

// A field that differs, as JSON pointer into the plan file ("/plan/tp"), with both values.
struct InputDifference {
  std::string field;
  std::string first, second;
};

// A figure of both results. Units are in the name, as in the command's JSON ("step_s").
struct ResultDifference {
  std::string figure;
  double first = 0.0, second = 0.0;

  double change() const { return second - first; }
};

struct Comparison {
  sim::StepResult first, second;
  std::vector<InputDifference> inputs;
  std::vector<ResultDifference> results;  // step, each part of the breakdown, memory, rates
  std::string verdict;                    // one line: which is faster, and mainly through what
};

Comparison compare(const Scenario& first, const Scenario& second);

}  // namespace shardwright::planner
