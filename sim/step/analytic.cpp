#include "sim/step/analytic.hpp"

#include <algorithm>

#include "sim/step/bound.hpp"
#include "sim/step/stage_paths.hpp"

namespace shardwright::sim {
namespace {

// Of the early gathers of the stages on the way, what the first forward pass does not hide.
double exposed_gathers(const StageCosts& costs) {
  double worst = 0.0;
  for (std::size_t stage = 0; stage < costs.stages.size(); ++stage) {
    const auto first = static_cast<std::size_t>(costs.profile->stages[stage].position.front());
    const DataParallelCost& data = costs.stages[stage].data;
    const double hidden = costs.chunks[first].of(SlotCost::Forward).time + data.first_gather;
    worst = std::max(worst, data.early_gathers - hidden);
  }
  return worst;
}

// The schedule's own bubble beyond that of the bound, in the times of an average chunk.
double extra_bubble(const StageCosts& costs) {
  if (costs.profile->extra_bubble == 0.0) return 0.0;
  double chunk = 0.0;
  for (const StageCost& stage : costs.stages) chunk += stage.busy;
  chunk /= costs.microbatches * costs.profile->microbatch_share *
           static_cast<double>(costs.profile->stages.front().position.size()) *
           static_cast<double>(costs.stages.size());
  return costs.profile->extra_bubble * chunk;
}

// As the bound's, with what collectives likely cost the kernels beside them and with all reductions
// that the slots likely do not hide.
double likely_end(const StageCosts& costs, const Plan& plan, std::size_t stage) {
  const StageCost& cost = costs.stages[stage];
  const DataParallelCost& first = costs.stages[0].data;
  const double end = slots_end(costs, stage) + cost.interference;
  double drain = drained(costs, stage, end);
  if (plan.schedule == ScheduleKind::OneFOneB && costs.stages.size() > 1)
    drain = std::max(drain, rounds_drained(costs, stage) + cost.interference);
  return std::max(end + cost.data.likely_tail + after_reduction(costs, stage),
                  drain + first.likely_tail + costs.stages[0].norm);
}

}  // namespace

Seconds analytic_step(const StageCosts& costs, const Plan& plan) {
  double slots = messages_drained(costs, plan) + costs.stages[0].norm, update = 0.0;
  for (std::size_t stage = 0; stage < costs.stages.size(); ++stage) {
    const StageCost& cost = costs.stages[stage];
    slots = std::max(slots, likely_end(costs, plan, stage));
    update = std::max(update, cost.optimizer + cost.data.late_gathers);
  }
  const double step =
      slots + costs.norm_reduce + update + exposed_gathers(costs) + extra_bubble(costs);
  return std::max(Seconds(step), bound_step(costs, plan));
}

}  // namespace shardwright::sim
