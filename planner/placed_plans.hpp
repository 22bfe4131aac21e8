// Plans whose stages lie on several pools, by closed forms: what fits, the analytic level, and
// splits of the layers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/layer_cost_cache.hpp"
#include "planner/placements.hpp"
#include "planner/plan_evaluation.hpp"
#include "planner/search.hpp"
#include "sim/step/stage_costs.hpp"

namespace shardwright::planner {

// By the pool's name.
using PoolLayerCosts = std::map<std::string, std::shared_ptr<LayerCostCache>>;

// A placement on the pools that it takes. Pools that are equal, with nothing slower between them,
// count as one.
struct PlacedPools {
  Placement placement;
  ClusterSpec cluster;
  // Of each stage; empty where one pool is left.
  std::vector<std::string> stage_pools;
  // Those of the stages, each once.
  std::vector<ClusterSpec> pools;
  // The memory of an accelerator of each pool that plans may use.
  std::vector<Bytes> available;
};

PlacedPools placed_pools(const PlanRequest& request, const Placement& placement);

// What the closed forms say of a plan.
struct PlacedLook {
  bool fits = false;
  // The largest peak of a pool over what is available there.
  double filled = 0.0;
  // A stage on the pool that this is of, and one on the pool that has the most room.
  std::int32_t fullest = 0, emptiest = 0;
  // Known of plans that fit:
  Seconds bound, analytic;
  // The value of the objective with the analytic step.
  double score = 0.0;
  // The stage whose slots take longest.
  std::size_t busiest = 0;

  bool better_than(const PlacedLook& other) const;
};

struct LookedAtPlan {
  PlacedLook look;
  Plan plan;
};

// Seconds of the forward and the backward pass.
double pass_time(const sim::PartCost& part);

// The same of an average layer.
double layer_time(const sim::LayerCosts& layers, const Plan& plan);

// The step by the analytic level, and the peak on the pool that is filled most.
struct StepForms {
  Seconds analytic;
  Bytes peak;
};

// The value of the request's objective. `computing` returns the compute of each stage, and is
// called where the objective needs it.
double score_of_closed_forms(const PlanRequest& request, const Plan& plan, const StepForms& forms,
                             const std::function<std::vector<Seconds>()>& computing);

// The plans of one cut on one placement. Everything referred to outlives it.
class PlacedCut {
 public:
  PlacedCut(const PlanRequest& request, const PlacedPools& placed, const Plan& cut,
            const PoolLayerCosts& known, sim::ScheduleProfiles& profiles);

  // `plan` obeys the rules and names the placement's pools.
  PlacedLook look_at(const Plan& plan);

  // The stages' loads, by which layers are balanced.
  std::vector<StageLoad> loads_of(const Plan& plan);

  // Moves layers away from stages that do not fit, until the plan fits or no move helps.
  PlacedLook make_fit(Plan& plan, const std::vector<StageLoad>& loads);

  // Moves single layers between chunks for as long as that helps.
  PlacedLook improve(Plan& plan, const std::vector<StageLoad>& loads);

  // Lets each stage of a plan with full recomputation recompute as few layers as it has room for.
  // The memory of a stage does not depend on what others recompute, and no layer less takes longer.
  void recompute_by_stage(Plan& plan, const std::vector<StageLoad>& loads);

 private:
  double score_of(const Plan& plan, const sim::StageCosts& costs, Seconds analytic) const;
  void look_at_memory(const sim::StageMemory& memory, PlacedLook& look) const;

  const PlanRequest& request_;
  const PlacedPools& placed_;
  sim::ScheduleProfiles& profiles_;
  std::vector<sim::PoolCosts> pools_;
  std::shared_ptr<const sim::LayerCosts> layers_;
  std::optional<sim::StageCostCache> costs_;
};

}  // namespace shardwright::planner
