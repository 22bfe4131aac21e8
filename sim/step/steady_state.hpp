// The steady state of a pipeline: a schedule of many microbatches repeats a few slots, and so do
// the times of their ops.
//
// A step is lowered with fewer microbatches, as many as the pipeline needs to fill, to repeat some
// periods and to drain. If its replay (folded_replay.hpp) finds that all stages end each op of the
// last periods exactly one shift after the same op of the period before, the periods that were left
// out do so too: an op starts at the maximum of times of which all move by the shift, and the host,
// if it holds nothing up and needs less time than the shift, stays ahead. Each of them makes the
// step longer by the shift.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/lowering/block_set.hpp"
#include "core/program/program.hpp"
#include "core/spec/scenario.hpp"

namespace shardwright::sim {

// The last period of a stage before it drains.
struct StagePeriod {
  // Its calls.
  std::size_t first = 0, end = 0;
  // The number of periods up to `end`, with this one, whose calls are alike.
  std::size_t alike = 0;

  std::size_t calls() const { return end - first; }
  // The first call of all periods that are alike.
  std::size_t begin() const { return end - alike * calls(); }
};

// A step with fewer microbatches than its plan has.
struct ShortStep {
  Program program;
  // The period of each stage.
  std::vector<StagePeriod> periods;
  // The number of periods that the step would be longer by.
  double left_out = 0.0;
};

// Returns the numbers of microbatches to shorten a step to, in the order in which to try them: none
// if it has so few that nothing would be gained.
std::vector<std::int64_t> short_steps(const Plan& plan);

// Returns nothing if the schedule with so many microbatches does not repeat its slots, or the
// stages their calls. `blocks`: of the plan.
std::optional<ShortStep> shorten(const Scenario& scenario, const BlockSet& blocks,
                                 std::int64_t microbatches);

}  // namespace shardwright::sim
