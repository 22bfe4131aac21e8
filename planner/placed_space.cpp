#include "planner/placed_space.hpp"

#include <algorithm>

#include "planner/plan_evaluation.hpp"
#include "sim/cost/placement.hpp"

namespace shardwright::planner {
namespace {

// Spaces of more plans, splits not counted, are not counted to the end.
constexpr std::int64_t kMostCounted = 400'000;

// The plans of a placement differ from those of a cluster of one pool in their splits.
SearchLimits limits_on(const PlacedPools& placed, SearchLimits limits) {
  limits.layer_splits = {LayerSplit::FrontHeavy};
  limits.max_tp = largest_tp_on(placed.pools, limits);
  return limits;
}

SpaceRequest space_request(const PlanRequest& request, const PlacedSpace& space,
                           std::int64_t gpus) {
  return {
      request.model,   space.placed.pools.front(), request.stack, gpus,        request.global_batch,
      request.seq_len, request.precision,          request.lora,  space.limits};
}

PlacedSpace space_on(const PlanRequest& request, const Placement& placement) {
  PlacedSpace space{placed_pools(request, placement), {}, {}};
  space.limits = limits_on(space.placed, request.limits);
  space.cuts = layer_cuts(space_request(request, space, placement.stage_ranks));
  std::erase_if(space.cuts,
                [&](const Plan& cut) { return placement.stage_ranks % (cut.tp * cut.cp) != 0; });
  return space;
}

}  // namespace

void PlacedSpace::for_each_shape(const PlanRequest& request, const Plan& cut,
                                 const std::function<void(const Plan&)>& visit) const {
  const Placement& placement = placed.placement;
  for_each_plan_of_depth(space_request(request, *this, placement.world_size()), cut,
                         placement.stages(), [&](Plan plan) {
                           plan.stage_pools = placement.stage_pools;
                           visit(plan);
                         });
}

std::vector<PlacedSpace> spaces_on(const PlanRequest& request,
                                   const std::vector<Placement>& placements) {
  std::vector<PlacedSpace> spaces;
  for (const Placement& placement : placements) spaces.push_back(space_on(request, placement));
  return spaces;
}

std::int64_t largest_tp_on(const std::vector<ClusterSpec>& pools, const SearchLimits& limits) {
  if (limits.max_tp > 0) return limits.max_tp;
  std::int64_t most = sim::domain_size(pools.front());
  for (const ClusterSpec& pool : pools) most = std::min(most, sim::domain_size(pool));
  return most;
}

std::optional<PlanRule> rule_broken_by(const PlanRequest& request, const Plan& plan,
                                       bool of_any_split) {
  return first_broken_rule(request.model, request.cluster, plan, plan.world_size(),
                           of_any_split ? nullptr : restricting_stack(request));
}

std::vector<std::int64_t> any_split(std::int64_t layers, std::int64_t chunks) {
  if (count_splits(layers, chunks) == 0) return {};
  std::vector<std::int64_t> split(static_cast<std::size_t>(chunks), 1);
  split.front() = 0;
  split.back() = layers - (chunks - 2);
  return split;
}

bool is_small(const PlanRequest& request, const std::vector<PlacedSpace>& spaces,
              std::int64_t most) {
  std::int64_t plans = 0, counted = 0;
  const auto is_large = [&] { return plans > most || counted > kMostCounted; };
  for (const PlacedSpace& space : spaces) {
    for (const Plan& cut : space.cuts) {
      if (is_large()) return false;
      space.for_each_shape(request, cut, [&](Plan plan) {
        ++counted;
        plan.stage_layers = any_split(request.model.layers, plan.chunks());
        if (is_large() || plan.stage_layers.empty() || rule_broken_by(request, plan, true)) return;
        plans += count_splits(request.model.layers, plan.chunks());
      });
    }
  }
  return !is_large();
}

}  // namespace shardwright::planner
