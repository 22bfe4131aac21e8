// The predicted timeline of a plan's step, with the program that it is of.
#pragma once

#include <cstdint>
#include <memory>

#include "core/program/program.hpp"
#include "core/spec/scenario.hpp"
#include "core/timeline/timeline.hpp"

namespace shardwright::gui {

struct PredictedStep {
  Scenario scenario;
  std::shared_ptr<const Program> program;
  std::shared_ptr<const Timeline> timeline;  // one rank of each stage
};

// Steps with more ops than this would take gigabytes as spans.
inline constexpr std::uint64_t kMostSpans = 4'000'000;

// Throws RuntimeFailure for a step of more than `kMostSpans` ops.
PredictedStep predict_step(const Scenario& scenario);

}  // namespace shardwright::gui
