// The predicted timeline of a plan's step, with the program that it is of.
#pragma once

#include <memory>
#include <stop_token>

#include "core/program/program.hpp"
#include "core/spec/scenario.hpp"
#include "core/timeline/timeline.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::gui {

struct PredictedStep {
  Scenario scenario;
  sim::StepResult result;
  std::shared_ptr<const Program> program;
  // One rank of each stage.
  std::shared_ptr<const Timeline> timeline;
};

// Throws RuntimeFailure for a step of more than `sim::kMostSpans` ops. Returns a step without a
// timeline once `stop` is requested.
PredictedStep predict_step(const Scenario& scenario, const std::stop_token& stop);

}  // namespace shardwright::gui
