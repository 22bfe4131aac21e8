#include "planner/placed_plans.hpp"

#include <algorithm>

#include "core/spec/pools.hpp"
#include "planner/objective.hpp"
#include "sim/step/analytic.hpp"
#include "sim/step/pool_links.hpp"

namespace shardwright::planner {
namespace {

// The chunks between which layers are moved. Of many chunks those of the busiest stage, and those
// at the ends of the pipeline and on both sides of each border between pools.
std::vector<std::size_t> movable_chunks(const Plan& plan, const StageLoad& busiest) {
  constexpr std::size_t kFew = 8;
  const std::size_t count = plan.stage_layers.size();
  std::vector<std::size_t> chunks;
  for (std::size_t chunk = 0; chunk < count; ++chunk) {
    const std::size_t stage = chunk % plan.stage_pools.size();
    const bool at_end = chunk == 0 || chunk + 1 == count;
    const bool at_border = stage == 0 || stage + 1 == plan.stage_pools.size() ||
                           plan.stage_pools[stage] != plan.stage_pools[stage - 1] ||
                           plan.stage_pools[stage] != plan.stage_pools[stage + 1];
    const bool is_busy = std::ranges::find(busiest.chunks, chunk) != busiest.chunks.end();
    if (count <= kFew || at_end || is_busy || (at_border && chunk < plan.stage_pools.size()))
      chunks.push_back(chunk);
  }
  return chunks;
}

}  // namespace

double pass_time(const sim::PartCost& part) {
  return part.slot[SlotPhase::Forward].time + part.slot[SlotPhase::Backward].time;
}

double layer_time(const sim::LayerCosts& layers, const Plan& plan) {
  const bool all_again = plan.recompute == RecomputePolicy::Full && plan.recompute_layers == 0 &&
                         plan.stage_recompute_layers.empty();
  const bool takes_recomputed = layers.kept.empty() || (all_again && !layers.recomputed.empty());
  const std::vector<sim::PartCost>& kinds = takes_recomputed ? layers.recomputed : layers.kept;
  double sum = 0.0;
  for (const std::int32_t kind : layers.kind_of_layer)
    sum += pass_time(kinds[static_cast<std::size_t>(kind)]);
  return sum / static_cast<double>(layers.kind_of_layer.size());
}

double score_of_closed_forms(const PlanRequest& request, const Plan& plan, const StepForms& forms,
                             const std::function<std::vector<Seconds>()>& computing) {
  sim::StepResult result;
  result.step = forms.analytic;
  result.stages.resize(1);
  result.stages[0].memory.peak = forms.peak;
  const bool by_expense =
      request.objective == Objective::Cost || request.objective == Objective::TokensPerJoule;
  const StepExpense expense =
      by_expense ? step_expense(request.cluster, plan, forms.analytic, computing()) : StepExpense();
  return score(request.objective, plan, result, expense);
}

PlacedPools placed_pools(const PlanRequest& request, const Placement& placement) {
  Scenario scenario{{}, request.cluster, {}, {}};
  scenario.plan.pp = placement.stages();
  scenario.plan.stage_pools = placement.stage_pools;
  scenario = sim::with_equal_pools_as_one(std::move(scenario));
  PlacedPools placed{placement, scenario.cluster, scenario.plan.stage_pools, {}, {}};
  placed.pools = pool_clusters(scenario.cluster, scenario.plan);
  if (placed.pools.empty()) placed.pools = {scenario.cluster};
  PlanRequest of_pool = request;
  for (const ClusterSpec& pool : placed.pools) {
    of_pool.cluster = pool;
    placed.available.push_back(available_memory(of_pool));
  }
  return placed;
}

bool PlacedLook::better_than(const PlacedLook& other) const {
  if (fits != other.fits) return fits;
  return fits ? score < other.score : filled < other.filled;
}

PlacedCut::PlacedCut(const PlanRequest& request, const PlacedPools& placed, const Plan& cut,
                     const PoolLayerCosts& known, sim::ScheduleProfiles& profiles)
    : request_(request), placed_(placed), profiles_(profiles) {
  Plan whole = cut;
  whole.pp = 1;
  whole.dp = placed.placement.world_size() / (cut.tp * cut.cp);
  const auto layers_on = [&](const ClusterSpec& pool) {
    return known.at(pool.name)->of(request.model, pool, request.stack, whole);
  };
  layers_ = layers_on(placed.pools.front());
  if (!placed.stage_pools.empty()) {
    for (const ClusterSpec& pool : placed.pools)
      pools_.push_back(
          {pool, sim::seen_from_outside(pool, request.cluster.between_pools), *layers_on(pool)});
  }
  costs_.emplace(sim::CutContext{request.model, placed.cluster, request.stack, *layers_, pools_},
                 profiles);
}

void PlacedCut::look_at_memory(const sim::StageMemory& memory, PlacedLook& look) const {
  double least = infinite<Seconds>().value();
  for (std::size_t pool = 0; pool < placed_.available.size(); ++pool) {
    const sim::PeakStage& peak = placed_.stage_pools.empty() ? memory : memory.pools[pool];
    const double filled = peak.peak / placed_.available[pool];
    if (filled > look.filled) {
      look.filled = filled;
      look.fullest = peak.fullest;
    }
    if (filled < least) {
      least = filled;
      look.emptiest = peak.fullest;
    }
  }
  look.fits = look.filled <= 1.0;
}

PlacedLook PlacedCut::look_at(const Plan& plan) {
  Plan seen = plan;
  seen.stage_pools = placed_.stage_pools;
  costs_->memory(seen);
  PlacedLook look;
  look_at_memory(costs_->memory_of_pools(), look);
  if (!look.fits) return look;
  const sim::StageCosts& costs = costs_->costs();
  look.bound = sim::bound_step(costs, seen);
  look.analytic = sim::analytic_step(costs, seen, look.bound);
  look.score = score_of(plan, costs, look.analytic);
  look.busiest = std::max_element(costs.stages.begin(), costs.stages.end(),
                                  [](const sim::StageCost& a, const sim::StageCost& b) {
                                    return a.busy < b.busy;
                                  })
                     ->stage;
  return look;
}

double PlacedCut::score_of(const Plan& plan, const sim::StageCosts& costs, Seconds analytic) const {
  Bytes fullest;
  auto room = infinite<Bytes>();
  for (std::size_t pool = 0; pool < placed_.pools.size(); ++pool) {
    const Bytes peak = pools_.empty() ? costs.memory.peak : costs.memory.pools[pool].peak;
    const Bytes left = placed_.pools[pool].accelerator.memory - peak;
    if (left < room) {
      room = left;
      fullest = peak;
    }
  }
  return score_of_closed_forms(request_, plan, {analytic, fullest},
                               [&] { return sim::computing_of_stages(costs); });
}

std::vector<StageLoad> PlacedCut::loads_of(const Plan& plan) {
  const sim::ScheduleProfile& profile = profiles_.of(plan.schedule, shape_of(plan));
  std::vector<double> times;
  if (pools_.empty()) times.push_back(layer_time(*layers_, plan));
  for (const sim::PoolCosts& pool : pools_) times.push_back(layer_time(pool.layers, plan));
  Plan seen;
  seen.stage_pools = placed_.stage_pools;
  const std::size_t last = static_cast<std::size_t>(plan.chunks()) - 1;
  std::vector<StageLoad> loads(profile.stages.size());
  for (std::size_t stage = 0; stage < loads.size(); ++stage) {
    const auto pool = static_cast<std::size_t>(pool_of_stage(seen, stage));
    const sim::LayerCosts& layers = pools_.empty() ? *layers_ : pools_[pool].layers;
    loads[stage].layer = times[pool];
    for (const std::int32_t position : profile.stages[stage].position) {
      const auto chunk = static_cast<std::size_t>(position);
      loads[stage].chunks.push_back(chunk);
      if (chunk == 0) loads[stage].fixed += pass_time(layers.embedding);
      if (chunk == last) loads[stage].fixed += pass_time(layers.head);
    }
  }
  return loads;
}

PlacedLook PlacedCut::make_fit(Plan& plan, const std::vector<StageLoad>& loads) {
  PlacedLook look = look_at(plan);
  while (!look.fits && look.fullest != look.emptiest) {
    Plan moved = plan;
    const StageLoad& from = loads[static_cast<std::size_t>(look.fullest)];
    const StageLoad& to = loads[static_cast<std::size_t>(look.emptiest)];
    if (!move_layer(largest_chunk(from, moved.stage_layers), smallest_chunk(to, moved.stage_layers),
                    moved.stage_layers))
      break;
    const PlacedLook next = look_at(moved);
    if (!next.better_than(look)) break;
    look = next;
    plan = std::move(moved);
  }
  return look;
}

void PlacedCut::recompute_by_stage(Plan& plan, const std::vector<StageLoad>& loads) {
  plan.recompute_layers = 0;
  plan.stage_recompute_layers.clear();
  for (const StageLoad& load : loads)
    plan.stage_recompute_layers.push_back(
        plan.stage_layers[largest_chunk(load, plan.stage_layers)]);
  if (!look_at(plan).fits) return;
  for (std::int64_t& layers : plan.stage_recompute_layers) {
    std::int64_t too_few = -1, enough = layers;
    while (enough - too_few > 1) {
      layers = too_few + (enough - too_few) / 2;
      (look_at(plan).fits ? enough : too_few) = layers;
    }
    layers = enough;
  }
}

PlacedLook PlacedCut::improve(Plan& plan, const std::vector<StageLoad>& loads) {
  PlacedLook best = look_at(plan);
  for (bool improved = true; improved;) {
    improved = false;
    const std::vector<std::int64_t> layers = plan.stage_layers;
    const std::vector<std::size_t> chunks = movable_chunks(plan, loads[best.busiest]);
    for (const std::size_t from : chunks) {
      for (const std::size_t to : chunks) {
        Plan moved = plan;
        moved.stage_layers = layers;
        if (from == to || !move_layer(from, to, moved.stage_layers)) continue;
        if (first_broken_rule(request_.model, request_.cluster, moved, moved.world_size(),
                              restricting_stack(request_)))
          continue;
        const PlacedLook look = look_at(moved);
        if (!look.better_than(best)) continue;
        best = look;
        plan.stage_layers = moved.stage_layers;
        improved = true;
      }
    }
  }
  return best;
}

}  // namespace shardwright::planner
