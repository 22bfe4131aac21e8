#include "sim/step/step_estimate.hpp"

#include "sim/step/analytic.hpp"
#include "sim/step/bound.hpp"
#include "sim/step/layer_costs.hpp"
#include "sim/step/schedule_profile.hpp"
#include "sim/step/stage_costs.hpp"

namespace shardwright::sim {

StepEstimate estimate_step(const Scenario& scenario) {
  const LayerCosts layers =
      layer_costs(scenario.model, scenario.plan, scenario.cluster, scenario.stack);
  ScheduleProfiles profiles;
  const CutContext cut{scenario.model, scenario.cluster, scenario.stack, layers};
  StageCostCache cache(scenario.cluster, scenario.stack, profiles);
  const Bytes memory = plan_memory(cut, scenario.plan, cache);
  const StageCosts& costs = stage_costs(cut, scenario.plan, cache);
  const Seconds bound = bound_step(costs, scenario.plan);
  return {memory, bound, analytic_step(costs, scenario.plan, bound)};
}

}  // namespace shardwright::sim
