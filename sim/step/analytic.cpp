#include "sim/step/analytic.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "core/program/group_lattice.hpp"
#include "core/spec/pools.hpp"
#include "sim/step/joint_experts.hpp"
#include "sim/step/layer_costs.hpp"
#include "sim/step/pipeline_paths.hpp"
#include "sim/step/pool_links.hpp"
#include "sim/step/schedule_profile.hpp"
#include "sim/step/stage_costs.hpp"

namespace shardwright::sim {

namespace {

// Returns the part of the stages' early gathers that their first forward pass does not hide.
double exposed_gathers(const StageCosts& costs) {
  double worst = 0.0;
  for (std::size_t stage = 0; stage < costs.stages.size(); ++stage) {
    const auto first = static_cast<std::size_t>(costs.profile_of(stage).position.front());
    const StateCost& states = costs.stages[stage].states;
    const double hidden = costs.chunk(first).slot[SlotPhase::Forward].time + states.first_gather;
    worst = std::max(worst, states.early_gathers - hidden);
  }
  return worst;
}

// The likely times of a stage's slots and reductions.
struct Likely {
  // Seconds that collectives cost the kernels beside them.
  double interference = 0.0;
  // Seconds from the last slot to the end of the last reduction.
  double tail = 0.0;
};

// `end` is the end of the stage's slots without interference.
Likely likely(const StageCosts& costs, const Plan& plan, std::size_t stage, double end) {
  const StageCost& cost = costs.stages[stage];
  const DataParallelCost& data = cost.data;
  double reduced = end + data.likely_tail;
  // The share of the time from the first reduction on in which kernels run.
  double computing = 1.0;
  if (plan.zero_stage == 2 || costs.sharded) {
    // Reductions begin with the first gradient.
    double begin = std::max(costs.paths[stage].returned, costs.paths[stage].filled + cost.warmup);
    if (costs.profile->splits_backward) begin += std::max(0.0, data.before_gradients - cost.warmup);
    reduced = std::max({reduced, begin + data.likely_reduce,
                        end - costs.paths[stage].trailing_weights + data.trailing_reduce});
    const double behind = cost.compute * (1.0 - cost.warmup / cost.busy);
    if (end > begin) computing = std::clamp(behind / (end - begin), 0.0, 1.0);
  }
  const double hidden = std::max(0.0, data.likely_reduce - (reduced - end)) * computing +
                        cost.states.early_gathers - cost.states.first_gather;
  Likely result;
  result.interference =
      std::min(cost.interference + hidden * costs.slowdown / (1.0 + costs.slowdown),
               costs.slowdown * cost.compute);
  result.tail = std::max(data.likely_tail, reduced - end - result.interference);
  return result;
}

// The likely end of the stage's slots, which copies of slots before may delay.
double likely_slots_end(const StageCosts& costs, std::size_t stage) {
  return costs.paths[stage].slots_end + costs.stages[stage].copy_wait;
}

// The time that the order of the schedule's list costs in addition to the path of any one stage.
double list_bubble(const StageCosts& costs) {
  if (costs.listed == 0.0) return 0.0;
  double explained = 0.0;
  for (std::size_t stage = 0; stage < costs.stages.size(); ++stage) {
    const double end = likely_slots_end(costs, stage);
    explained =
        std::max({explained, end, drained(costs, stage, end), costs.paths[stage].rounds_drained});
  }
  return std::max(0.0, costs.listed - explained);
}

// The end of the first stage's slots: of its own, or of those that the last gradient comes from.
double first_slots_end(const StageCosts& costs) {
  double end = likely_slots_end(costs, 0);
  for (std::size_t stage = 1; stage < costs.stages.size(); ++stage)
    end = std::max(end, drained(costs, stage, likely_slots_end(costs, stage)));
  return end;
}

// The bound's end, with the time that collectives cost the kernels beside them and with all
// reductions.
double likely_end(const StageCosts& costs, const Plan& plan, std::size_t stage, double bubble,
                  double first_tail) {
  const double slots = likely_slots_end(costs, stage);
  const Likely more = likely(costs, plan, stage, slots + bubble);
  const double drain = std::max(drained(costs, stage, slots), costs.paths[stage].rounds_drained);
  const double device = bubble + more.interference +
                        std::max(slots + more.tail + after_reduction(costs, stage),
                                 drain + first_tail + after_reduction(costs, 0));
  // issued_and_finished() takes the same stage.
  const std::size_t last = costs.profile->splits_backward ? stage : 0;
  const double host = issued_and_finished(costs, stage) + costs.stages[last].data.last_reduce;
  return std::max(device, host);
}

// Empty where the plan names no pools.
std::vector<PoolCosts> costs_of_pools(const Scenario& scenario) {
  std::vector<PoolCosts> pools;
  for (const ClusterSpec& pool : pool_clusters(scenario.cluster, scenario.plan)) {
    pools.push_back({pool, seen_from_outside(pool, scenario.cluster.between_pools),
                     layer_costs(scenario.model, scenario.plan, pool, scenario.stack)});
  }
  return pools;
}

}  // namespace

Seconds analytic_step(const StageCosts& costs, const Plan& plan, Seconds bound) {
  const double bubble = list_bubble(costs);
  const double first_tail = likely(costs, plan, 0, first_slots_end(costs) + bubble).tail;
  double slots = messages_drained(costs, plan) + first_tail + after_reduction(costs, 0);
  for (std::size_t stage = 0; stage < costs.stages.size(); ++stage)
    slots = std::max(slots, likely_end(costs, plan, stage, bubble, first_tail));
  const double before = slots + costs.norm_reduce + exposed_gathers(costs);
  return std::max(Seconds(before + update_time(costs, plan, before)), bound);
}

namespace {

void take_slower(const StageCosts& costs, Bytes memory, const Plan& plan, StepEstimate& slowest) {
  const Seconds bound = bound_step(costs, plan);
  const std::vector<Seconds> computing = computing_of_stages(costs);
  slowest.computing.insert(slowest.computing.end(), computing.begin(), computing.end());
  slowest.memory = std::max(slowest.memory, memory);
  slowest.bound = std::max(slowest.bound, bound);
  slowest.analytic = std::max(slowest.analytic, analytic_step(costs, plan, bound));
}

// The stages of a part that have the same pool and whose replicas lie on the same pools share
// costs. Names each stage after these pools, and returns the costs in the order of the names.
std::vector<PoolCosts> costs_of_stages(const Scenario& scenario, std::size_t part, Plan& plan) {
  const std::vector<ClusterSpec> pools = pool_clusters(scenario.cluster, scenario.plan);
  const auto outside = [&](std::int32_t pool) {
    return seen_from_outside(pools[static_cast<std::size_t>(pool)], scenario.cluster.between_pools);
  };
  std::vector<PoolCosts> costs;
  const auto stages = static_cast<std::size_t>(plan.pp);
  for (std::size_t stage = part * stages; stage < (part + 1) * stages; ++stage) {
    const std::int32_t own = pool_of_stage(scenario.plan, stage);
    const std::vector<std::int32_t> joined = pools_of_replicas(scenario.plan, stage);
    std::string name = fmt::format("{} of {}", own, fmt::join(joined, ", "));
    const bool is_new = std::ranges::count(plan.stage_pools, name) == 0;
    plan.stage_pools.push_back(std::move(name));
    if (!is_new) continue;
    const ClusterSpec& pool = pools[static_cast<std::size_t>(own)];
    PoolCosts& added = costs.emplace_back(
        PoolCosts{pool, outside(own), layer_costs(scenario.model, plan, pool, scenario.stack), {}});
    if (joined.size() > 1)
      std::ranges::transform(joined, std::back_inserter(added.replica_pools), outside);
  }
  return costs;
}

// Of plans that split replicas.
StepEstimate estimate_split_replicas(const Scenario& scenario, ScheduleProfiles& profiles) {
  StepEstimate slowest;
  for (std::size_t part = 0; part < scenario.plan.replica_pools.size(); ++part) {
    Plan plan = plan_of_part(scenario.plan, part);
    const std::vector<PoolCosts> pools = costs_of_stages(scenario, part, plan);
    const PoolCosts& first = pools.front();
    StageCostCache cache({scenario.model, first.cluster, scenario.stack, first.layers, pools},
                         profiles);
    const Bytes memory = cache.memory(plan);
    for (std::size_t pool = 0; pool < pools.size(); ++pool)
      slowest.peaks.push_back({pools[pool].cluster.name, cache.memory_of_pools().pools[pool].peak});
    take_slower(cache.costs(), memory, plan, slowest);
  }
  return slowest;
}

}  // namespace

// Replicas on several pools wait for those of the slowest one.
StepEstimate estimate_replicas(const Scenario& scenario, ScheduleProfiles& profiles) {
  if (splits_replicas(scenario.plan)) return estimate_split_replicas(scenario, profiles);
  const std::vector<ClusterSpec> pools = pool_clusters(scenario.cluster, scenario.plan);
  std::vector<ClusterSpec> outside;
  for (const ClusterSpec& pool : pools)
    outside.push_back(seen_from_outside(pool, scenario.cluster.between_pools));
  StepEstimate slowest;
  const auto add_part = [&](std::size_t part, const PriceChange& change) {
    const Plan plan = plan_of_part(scenario.plan, part);
    const ClusterSpec pool = *pool_cluster(scenario.cluster, plan.replica_pools[part].pool);
    const LayerCosts layers = layer_costs(scenario.model, plan, pool, scenario.stack, change);
    StageCostCache cache({scenario.model, pool, scenario.stack, layers, {}, outside}, profiles);
    const Bytes memory = cache.memory(plan);
    slowest.peaks.push_back({pool.name, memory});
    take_slower(cache.costs(), memory, plan, slowest);
  };
  const std::size_t parts = scenario.plan.replica_pools.size();
  if (!joins_pools_of_replicas(Group::Expert, scenario.plan)) {
    for (std::size_t part = 0; part < parts; ++part) add_part(part, {});
    return slowest;
  }
  const JointExperts experts(scenario);
  const auto estimate = [&](bool waits) -> StepEstimate& {
    slowest = {};
    for (std::size_t part = 0; part < parts; ++part)
      add_part(part, [&](BlockId block, BlockPrices& prices) {
        experts.join(part, block, waits, prices);
      });
    return slowest;
  };
  // The sums of what each exchange waits may exceed what a step with overlap waits.
  const Seconds bound = estimate(false).bound;
  estimate(true).bound = bound;
  return slowest;
}

StepEstimate estimate_step(const Scenario& given) {
  const Scenario scenario = with_equal_pools_as_one(given);
  ScheduleProfiles profiles;
  if (!scenario.plan.replica_pools.empty()) return estimate_replicas(scenario, profiles);
  const std::vector<PoolCosts> pools = costs_of_pools(scenario);
  const LayerCosts layers =
      layer_costs(scenario.model, scenario.plan, scenario.cluster, scenario.stack);
  StageCostCache cache({scenario.model, scenario.cluster, scenario.stack, layers, pools}, profiles);
  const Bytes memory = cache.memory(scenario.plan);
  const StageCosts& costs = cache.costs();
  const Seconds bound = bound_step(costs, scenario.plan);
  return {memory, bound, analytic_step(costs, scenario.plan, bound)};
}

}  // namespace shardwright::sim
