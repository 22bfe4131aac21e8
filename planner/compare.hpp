// Two scenarios side by side: what differs between them, and what that does to the step.
#pragma once

#include <cstdint>
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

// What decides which of two scenarios is faster: steps compare only where they train as many tokens
// on as many accelerators.
enum class Yardstick : std::uint8_t {
  Step,
  TokensPerSecond,                // other batches or sequences
  TokensPerSecondPerAccelerator,  // other numbers of accelerators
};

// "step_s", "tokens_per_s", "tokens_per_s_per_gpu": the figure of the results that decides.
const char* name_of(Yardstick yardstick);

struct Comparison {
  sim::StepResult first, second;
  std::vector<InputDifference> inputs;
  std::vector<ResultDifference> results;  // step, each part of the breakdown, memory, rates
  Yardstick yardstick = Yardstick::Step;
  std::string verdict;  // one line: which is faster by the yardstick, and mainly through what
};

Comparison compare(const Scenario& first, const Scenario& second);

}  // namespace shardwright::planner
