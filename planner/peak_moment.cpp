#include "planner/peak_moment.hpp"

#include <algorithm>

#include "core/lowering/lowering.hpp"

namespace shardwright::planner {

std::optional<PeakMoment> peak_moment(const Scenario& scenario, const sim::StepResult& result) {
  const Program program = lower(scenario.model, scenario.plan, scenario.stack);
  const RankProgram& rank = program.stages[static_cast<std::size_t>(result.fullest)];
  const std::uint32_t number = result.memory().op;
  const auto after =
      std::upper_bound(rank.calls.begin(), rank.calls.end(), number,
                       [](std::uint32_t op, const Call& call) { return op < call.first_op; });
  if (after == rank.calls.begin()) return std::nullopt;
  const Call& call = *(after - 1);
  if (number - call.first_op >= program.blocks[call.block].ops.size()) return std::nullopt;
  const Op& op = program.op(call, number);
  return PeakMoment{op.name, op.phase, call.layer, call.microbatch};
}

}  // namespace shardwright::planner
