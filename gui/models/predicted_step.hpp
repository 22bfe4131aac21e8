// The predicted timeline of a plan's step, with the program that it is of.
#pragma once

#include <cstdint>
#include <memory>

#include "core/program/program.hpp"
#include "core/spec/scenario.hpp"
#include "core/timeline/timeline.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::gui {

struct PredictedStep {
  Scenario scenario;
  sim::StepResult result;
  std::shared_ptr<const Program> program;
  std::shared_ptr<const Timeline> timeline;  // one rank of each stage
};

// Steps with more ops than this would take gigabytes as spans.
inline constexpr std::uint64_t kMostSpans = 4'000'000;

// `result` is what is known of the step. Throws RuntimeFailure for a step of more than `kMostSpans`
// ops.
PredictedStep predict_step(const Scenario& scenario, const sim::StepResult& result);

}  // namespace shardwright::gui
