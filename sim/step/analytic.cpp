#include "sim/step/analytic.hpp"

#include <algorithm>

#include "sim/step/bound.hpp"

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

}  // namespace

Seconds analytic_step(const StageCosts& costs, const Plan& plan) {
  return bound_step(costs, plan) + Seconds(exposed_gathers(costs) + extra_bubble(costs));
}

}  // namespace shardwright::sim
