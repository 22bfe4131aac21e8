// The op during which a step holds the most memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/program/program.hpp"
#include "core/spec/scenario.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::planner {

struct PeakMoment {
  // "attention.qkv"
  std::string op;
  Phase phase = Phase::Forward;
  // -1 if the op belongs to no layer, or to no microbatch.
  std::int64_t layer = -1, microbatch = -1;
};

// Lowers the plan once more. `result` is that of the scenario; the moment is one of its fullest
// stage. None if no op runs at the peak.
std::optional<PeakMoment> peak_moment(const Scenario& scenario, const sim::StepResult& result);

}  // namespace shardwright::planner
