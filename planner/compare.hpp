// Two scenarios side by side: their differences, and the effect on the step.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/enum_names.hpp"
#include "core/spec/scenario.hpp"
#include "planner/figure.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::planner {

// A value of a plan file.
struct InputValue {
  // As the file has it; "null" if the file does not have the field.
  std::string json;
  // With its unit: "400 GB/s", "full", "none".
  std::string text;
};

// A field that differs, with both values.
struct InputDifference {
  // The keys of the field in the plan file, outermost first: {"cluster", "node", "accelerators"}.
  std::vector<std::string> path;
  InputValue first, second;

  // "/cluster/node/accelerators".
  std::string pointer() const;
};

// A figure of both results.
struct ResultDifference {
  Figure figure;
  double first = 0.0, second = 0.0;

  double change() const { return second - first; }
};

// The figure that decides which of two scenarios is faster: steps compare only if they train as
// many tokens on as many accelerators.
enum class Yardstick : std::uint8_t {
  Step,
  TokensPerSecond,                // batches or sequences differ
  TokensPerSecondPerAccelerator,  // numbers of accelerators differ
};

// The names of the figures of the results that decide.
constexpr auto enum_names(Yardstick) {
  return std::array{"step_s", "tokens_per_s", "tokens_per_s_per_gpu"};
}

// The amounts that steps of different sizes compare by.
struct ComparedSide {
  double accelerators = 0.0;
  // Tokens of one step.
  double tokens = 0.0;
  double tokens_per_s = 0.0;
  // 0 if the profiles have no price.
  double dollars_per_token = 0.0;
};

// A part of the step that differs, in seconds that the second scenario spends more on as many
// tokens as the first step trains.
struct PartChange {
  sim::StepPart part = sim::StepPart::Gemm;
  double seconds = 0.0;
};

struct Comparison {
  sim::StepResult first, second;
  ComparedSide first_side, second_side;
  bool same_model = true;
  std::vector<InputDifference> inputs;
  // The step, each part of the breakdown, memory and rates.
  std::vector<ResultDifference> results;
  Yardstick yardstick = Yardstick::Step;
  // The part of the step that differs most. None if no part differs, or if the numbers of
  // accelerators do.
  std::optional<PartChange> largest_change;
};

Comparison compare(const Scenario& first, const Scenario& second);

}  // namespace shardwright::planner
