#include "planner/joint_plans.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/spec/pools.hpp"
#include "core/spec/rank_nesting.hpp"
#include "planner/divisions.hpp"
#include "planner/layer_cost_cache.hpp"
#include "planner/placed_space.hpp"
#include "planner/replica_search.hpp"

namespace shardwright::planner {
namespace {

// Spaces of more placements, or on more accelerators, are not evaluated whole.
constexpr std::size_t kMostCells = 400;
constexpr std::int64_t kMostJointAccelerators = 64;
// Placements of more parts, which several pools may have, have too many shares to compare.
constexpr std::size_t kMostParts = 3;

// All copies of an expert then lie on one pool.
const std::vector<Axis>& experts_outermost() {
  static const std::vector<Axis> kOrder = {Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data,
                                           Axis::Expert};
  return kOrder;
}

std::vector<ClusterSpec> clusters_of(const ClusterSpec& cluster,
                                     const std::vector<PoolReplicas>& parts) {
  Plan plan;
  for (const PoolReplicas& part : parts)
    plan.pp = std::max(plan.pp, static_cast<std::int64_t>(part.stage_pools.size()));
  plan.replica_pools = parts;
  return pool_clusters(cluster, plan);
}

std::vector<std::int64_t> replicas_of(const std::vector<PoolReplicas>& parts) {
  std::vector<std::int64_t> replicas;
  for (const PoolReplicas& part : parts) replicas.push_back(part.replicas);
  return replicas;
}

// The plans on parts of replicas, each of which has so many ranks.
struct JointSpace {
  std::vector<PoolReplicas> parts;
  std::int64_t world = 1, ranks = 1;
  SearchLimits limits;

  SpaceRequest request_of(const PlanRequest& request) const {
    return {request.model,   request.cluster,   request.stack, world, request.global_batch,
            request.seq_len, request.precision, request.lora,  limits};
  }
};

void set_share(const Division& share, Plan& plan) {
  for (std::size_t part = 0; part < share.size(); ++part)
    plan.replica_pools[part].microbatches = share[part];
}

// Adds a plan for each way to divide the units, which `set` writes into the plan.
void add_divisions(const std::vector<std::int64_t>& members, std::int64_t units, const Plan& given,
                   bool open_split, void (*set)(const Division&, Plan&), JointPlans& plans) {
  Plan plan = given;
  if (!plans.has_room_for(most_divisions(members, units))) return plans.overflow();
  for_each_division(members, units, [&](const Division& division) {
    set(division, plan);
    if (!plans.is_full()) plans.add(plan, open_split);
  });
}

void with_all_shares(const PlanRequest& request, const SplitPlacement& placement, Plan plan,
                     JointPlans& plans) {
  if (plan.global_batch % plan.micro_batch != 0) return plans.reject(PlanRule::GlobalBatch);
  plan.replica_pools = placement.parts;
  plan.stage_layers = any_split(request.model.layers, plan.chunks());
  if (plan.stage_layers.empty()) return plans.reject(PlanRule::Layers);
  add_divisions(replicas_of(placement.parts), plan.global_batch / plan.micro_batch, plan, true,
                set_share, plans);
}

// False where a constraint on degrees excludes all plans of a cut. Large spaces are not searched
// for the others one by one.
bool allows_degrees(const Constraints& constraints, Plan cut, std::int64_t stages,
                    std::int64_t replicas) {
  cut.pp = stages;
  cut.dp = replicas;
  return std::ranges::all_of(constraints.fixed, [&](const Constraint& constraint) {
    switch (constraint.field) {
      case PlanField::Dp:
      case PlanField::Tp:
      case PlanField::Pp:
      case PlanField::Cp:
      case PlanField::Ep:
      case PlanField::MicroBatch:
        return constraint.holds(cut);
      default:
        return true;
    }
  });
}

// Calls `visit` with each plan on the placement, whose shares and split are open, until `plans` are
// full.
void for_each_split_shape(const PlanRequest& request, const SplitPlacement& placement,
                          std::int64_t ranks, const JointPlans& plans,
                          const std::function<void(const Plan&)>& visit) {
  JointSpace space{placement.parts, placement.replicas() * placement.stages * ranks, ranks,
                   request.limits};
  space.limits.max_tp = largest_tp_on(clusters_of(request.cluster, space.parts), request.limits);
  space.limits.layer_splits = {LayerSplit::FrontHeavy};
  space.limits.rank_orders = {placement.rank_order()};
  const SpaceRequest request_of_space = space.request_of(request);
  for (const Plan& cut : layer_cuts(request_of_space)) {
    if (cut.tp * cut.cp != ranks || plans.is_full() ||
        !allows_degrees(request.constraints, cut, placement.stages, placement.replicas()))
      continue;
    for_each_plan_of_depth(request_of_space, cut, placement.stages, [&](const Plan& plan) {
      if (!plans.is_full()) visit(plan);
    });
  }
}

// Sets the microbatches of parts that run the same number; false where there is none.
bool share_equally(Plan& plan) {
  const std::int64_t together = plan.dp * plan.micro_batch;
  if (plan.global_batch % together != 0) return false;
  for (PoolReplicas& part : plan.replica_pools) part.microbatches = plan.global_batch / together;
  return true;
}

void set_experts(const Division& numbers, Plan& plan) {
  const bool equal = std::ranges::count(numbers, numbers.front()) == std::ssize(numbers);
  for (std::size_t part = 0; part < numbers.size(); ++part)
    plan.replica_pools[part].experts = equal ? 0 : numbers[part];
}

// False where the copies of an expert would lie on several pools.
bool parts_hold_whole_copies(const Plan& plan) {
  return std::ranges::all_of(plan.replica_pools, [&](const PoolReplicas& part) {
    return part.replicas * plan.tp * plan.cp % expert_replicas(plan) == 0;
  });
}

bool spans_replicas(const PlanRequest& request, const Plan& plan) {
  return request.model.moe && plan.expert_tp == 1 && spreads_experts(plan) &&
         plan.dp * plan.tp * plan.cp % plan.ep == 0;
}

// The same of plans whose groups of experts span the replicas of the placement. Their microbatches
// are set, their numbers of experts open.
void for_each_expert_shape(const PlanRequest& request, const ReplicaPlacement& placement,
                           JointPlans& plans, const std::function<void(const Plan&)>& visit) {
  JointSpace space{placement.parts, placement.replicas() * placement.replica_ranks,
                   placement.replica_ranks, request.limits};
  space.limits.max_tp = largest_tp_on(clusters_of(request.cluster, space.parts), request.limits);
  space.limits.rank_orders = {experts_outermost()};
  const SpaceRequest request_of_space = space.request_of(request);
  for (Plan cut : layer_cuts(request_of_space)) {
    const std::int64_t depth = space.ranks / (cut.tp * cut.cp);
    if (depth * cut.tp * cut.cp != space.ranks || depth > request.limits.max_pp ||
        plans.is_full() ||
        !allows_degrees(request.constraints, cut, depth, space.world / (depth * cut.tp * cut.cp)))
      continue;
    cut.overlap.expert_microbatches = false;
    for_each_plan_of_depth(request_of_space, cut, depth, [&](Plan plan) {
      plan.replica_pools = space.parts;
      if (!spans_replicas(request, plan) || plans.is_full()) return;
      if (!share_equally(plan)) return plans.reject(PlanRule::GlobalBatch);
      if (!parts_hold_whole_copies(plan)) return plans.reject(PlanRule::ReplicaPools);
      visit(plan);
    });
  }
}

// What a layer and the ends of the model take on each pool, by its name.
struct PoolSpeed {
  double layer = 0.0, embedding = 0.0, head = 0.0;
};
using PoolSpeeds = std::map<std::string, PoolSpeed>;

PoolSpeeds speeds_of(const PlanRequest& request, const PoolLayerCosts& known, const Plan& seed) {
  Plan whole = seed;
  whole.pp = whole.ep = whole.expert_tp = 1;
  whole.dp = std::max<std::int64_t>(1, request.gpus / (seed.tp * seed.cp));
  whole.rank_order = Plan().rank_order;
  whole.shard_group = 0;
  whole.stage_pools.clear();
  whole.replica_pools.clear();
  PoolSpeeds speeds;
  for (const std::string& pool : names_of_pools(request.cluster)) {
    const auto layers = known.at(pool)->of(request.model, *pool_cluster(request.cluster, pool),
                                           request.stack, whole);
    speeds[pool] = {layer_time(*layers, seed), pass_time(layers->embedding),
                    pass_time(layers->head)};
  }
  return speeds;
}

// The loads of the stages, each as fast as its ranks on all pools together.
std::vector<StageLoad> mean_loads(const Plan& plan, const PoolSpeeds& speeds,
                                  sim::ScheduleProfiles& profiles) {
  const auto& stages = profiles.of(plan.schedule, shape_of(plan)).stages;
  const std::size_t last = static_cast<std::size_t>(plan.chunks()) - 1;
  std::vector<StageLoad> loads(stages.size());
  for (std::size_t stage = 0; stage < loads.size(); ++stage) {
    double rate = 0.0;
    for (const PoolReplicas& part : plan.replica_pools)
      rate += static_cast<double>(part.replicas) / speeds.at(part.pool_of(stage)).layer;
    loads[stage].layer = static_cast<double>(plan.dp) / rate;
    const PoolSpeed& first = speeds.at(plan.replica_pools.front().pool_of(stage));
    const double slower = loads[stage].layer / first.layer;
    for (const std::int32_t position : stages[stage].position) {
      const auto chunk = static_cast<std::size_t>(position);
      loads[stage].chunks.push_back(chunk);
      if (chunk == 0) loads[stage].fixed += first.embedding * slower;
      if (chunk == last) loads[stage].fixed += first.head * slower;
    }
  }
  return loads;
}

// Seconds of a microbatch in the slowest stage of each part, roughly.
std::vector<double> times_of_parts(const Plan& plan, const std::vector<StageLoad>& loads,
                                   const PoolSpeeds& speeds) {
  std::vector<double> times;
  for (const PoolReplicas& part : plan.replica_pools) {
    double slowest = 0.0;
    for (std::size_t stage = 0; stage < loads.size(); ++stage) {
      double layers = 0.0;
      for (const std::size_t chunk : loads[stage].chunks)
        layers += static_cast<double>(plan.stage_layers[chunk]);
      const double slower = speeds.at(part.pool_of(stage)).layer / loads[stage].layer;
      slowest = std::max(slowest, (layers * loads[stage].layer + loads[stage].fixed) * slower);
    }
    times.push_back(slowest);
  }
  return times;
}

// The group of the seed, where it divides the replicas.
void fit_shard_group(Plan& plan) {
  if (plan.shard_group != 0 && plan.dp * plan.cp % plan.shard_group != 0) plan.shard_group = 0;
}

// A plan on the placement with the seed's degrees and schedule.
Plan plan_on(const SplitPlacement& placement, const Plan& seed) {
  Plan plan = seed;
  plan.pp = placement.stages;
  plan.dp = placement.replicas();
  plan.rank_order = placement.rank_order();
  plan.stage_pools.clear();
  plan.replica_pools = placement.parts;
  plan.stage_recompute_layers.clear();
  plan.embedding_counts_as_layer = plan.head_counts_as_layer = false;
  fit_shard_group(plan);
  return plan;
}

void add_near(const PlanRequest& request, const SplitPlacement& placement, const Plan& seed,
              const PoolSpeeds& speeds, sim::ScheduleProfiles& profiles, JointPlans& plans) {
  if (placement.parts.size() > kMostParts) return;
  Plan plan = plan_on(placement, seed);
  plan.stage_layers = any_split(request.model.layers, plan.chunks());
  if (plan.stage_layers.empty() || plan.global_batch % plan.micro_batch != 0) return;
  const auto shares_by = [&](const std::vector<double>& times) {
    return balanced_divisions(replicas_of(placement.parts), plan.global_batch / plan.micro_batch,
                              {times, plan.pp - 1});
  };
  // A plan that breaks a rule with equal replicas has no loads.
  const std::vector<Division> equal = shares_by(std::vector<double>(placement.parts.size(), 1.0));
  if (equal.empty()) return;
  set_share(equal.front(), plan);
  if (const auto rule = rule_broken_by(request, plan, true)) return plans.reject(*rule);
  const std::vector<StageLoad> loads = mean_loads(plan, speeds, profiles);
  plan.stage_layers = balanced_split(request.model.layers, loads);
  // Beyond ZeRO-1 the parts' microbatches have to be equal.
  const std::vector<Division> shares =
      plan.zero_stage > 1 ? equal : shares_by(times_of_parts(plan, loads, speeds));
  for (const Division& share : shares) {
    set_share(share, plan);
    plans.add(plan, false);
  }
}

// The plan with as many experts on all ranks, and with numbers by the pools' speeds.
void add_near_numbers(const PlanRequest& request, Plan plan, const PoolSpeeds& speeds,
                      JointPlans& plans) {
  plans.add(plan, false);
  std::vector<double> times;
  for (const PoolReplicas& part : plan.replica_pools) times.push_back(speeds.at(part.pool).layer);
  for (const Division& numbers :
       balanced_divisions(expert_ranks_of_parts(plan), request.model.moe->experts, {times, 0})) {
    set_experts(numbers, plan);
    if (numbers_experts(plan)) plans.add(plan, false);
  }
}

// Leaves so many replicas out, of the last pools first or of the first ones.
ReplicaPlacement trimmed(ReplicaPlacement placement, std::int64_t excess, bool from_last) {
  const std::size_t count = placement.parts.size();
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t& replicas = placement.parts[from_last ? count - 1 - i : i].replicas;
    const std::int64_t fewer = std::min(excess, replicas - 1);
    replicas -= fewer;
    excess -= fewer;
  }
  return placement;
}

// Those that fill the pools, as far as all replicas can run the same number of microbatches.
std::vector<ReplicaPlacement> placements_of_experts(const PlanRequest& request) {
  std::vector<ReplicaPlacement> placements;
  if (!request.model.moe) return placements;
  for (const ReplicaPlacement& full : replica_placements(request.cluster, request.gpus, false)) {
    std::int64_t replicas = full.replicas();
    while (request.global_batch % replicas != 0) --replicas;
    const std::int64_t excess = full.replicas() - replicas;
    if (replicas < std::ssize(full.parts)) continue;
    placements.push_back(trimmed(full, excess, true));
    if (excess > 0) placements.push_back(trimmed(full, excess, false));
  }
  return placements;
}

// Adds plans with each number of ranks of a group.
void add_experts_near(const PlanRequest& request, const ReplicaPlacement& placement,
                      const Plan& seed, const PoolSpeeds& speeds, JointPlans& plans) {
  for (std::int64_t ep = 2; ep <= request.model.moe->experts; ++ep) {
    if (request.model.moe->experts % ep != 0) continue;
    Plan plan = seed;
    plan.ep = ep;
    plan.expert_tp = 1;
    plan.overlap.expert_microbatches = false;
    plan.dp = placement.replicas();
    plan.rank_order = experts_outermost();
    // Layers that were split by the speeds of the stages' pools.
    if (seed.replica_pools.empty() && pools_of(seed).size() > 1) plan.stage_layers.clear();
    plan.stage_pools.clear();
    plan.stage_recompute_layers.clear();
    plan.replica_pools = placement.parts;
    fit_shard_group(plan);
    if (spans_replicas(request, plan) && share_equally(plan) && parts_hold_whole_copies(plan))
      add_near_numbers(request, std::move(plan), speeds, plans);
  }
}

}  // namespace

JointPlans::JointPlans(const PlanRequest& request, std::int64_t most)
    : request_(request), most_(most) {
  counts_.broken_rules.assign(all_plan_rules().size(), 0);
  counts_.broken_constraints.assign(
      request.constraints.fixed.size() + request.constraints.forbidden.size(), 0);
}

void JointPlans::reject(PlanRule rule) {
  ++counts_.space;
  ++counts_.broken_rules[static_cast<std::size_t>(rule)];
}

void JointPlans::add(Plan plan, bool open_split) {
  if (const auto rule = rule_broken_by(request_, plan, open_split)) return reject(*rule);
  if (const auto constraint = first_broken_constraint(request_.constraints, plan)) {
    ++counts_.space;
    ++counts_.broken_constraints[*constraint];
    return;
  }
  if (!open_split) {
    ++counts_.space;
    plans_.push_back(std::move(plan));
    return;
  }
  if (count_splits(request_.model.layers, plan.chunks()) > most_) return overflow();
  for_each_split(request_.model.layers, plan.chunks(), [&](const std::vector<std::int64_t>& split) {
    if (is_full()) return;
    plan.stage_layers = split;
    add(plan, false);
  });
}

void add_all_joint(const PlanRequest& request, JointPlans& plans) {
  if (size_of_pools(request.cluster, request.gpus) > kMostJointAccelerators)
    return plans.overflow();
  const auto cells = all_placements(request.cluster, {request.gpus, request.gpus}, kMostCells);
  if (!cells) return plans.overflow();
  for (const Placement& placement : *cells) {
    const std::int64_t most = std::min(request.limits.max_pp, placement.stages() / 2);
    for (std::int64_t stages = 2; stages <= most && !plans.is_full(); ++stages) {
      if (placement.stages() % stages != 0) continue;
      for (const SplitPlacement& split : split_placements(placement, stages))
        for_each_split_shape(request, split, placement.stage_ranks, plans, [&](const Plan& plan) {
          with_all_shares(request, split, plan, plans);
        });
    }
  }
  if (!request.model.moe) return;
  for (const ReplicaPlacement& placement : replica_placements(request.cluster, request.gpus, true))
    for_each_expert_shape(request, placement, plans, [&](const Plan& plan) {
      add_divisions(expert_ranks_of_parts(plan), request.model.moe->experts, plan, false,
                    set_experts, plans);
    });
}

void add_joint_shapes(const PlanRequest& request, const PoolLayerCosts& known,
                      sim::ScheduleProfiles& profiles, JointPlans& plans) {
  for (const Placement& cells : full_placements(request.cluster, {request.gpus, request.gpus})) {
    const std::int64_t most = std::min(request.limits.max_pp, cells.stages() / 2);
    for (std::int64_t stages = 2; stages <= most && !plans.is_full(); ++stages) {
      for (const SplitPlacement& split : split_placements(cells, stages))
        for_each_split_shape(request, split, cells.stage_ranks, plans, [&](const Plan& plan) {
          add_near(request, split, plan, speeds_of(request, known, plan), profiles, plans);
        });
    }
  }
  for (const ReplicaPlacement& placement : placements_of_experts(request))
    for_each_expert_shape(request, placement, plans, [&](const Plan& plan) {
      add_near_numbers(request, plan, speeds_of(request, known, plan), plans);
    });
}

void add_joint_near(const PlanRequest& request, const PoolLayerCosts& known, const Plan& seed,
                    sim::ScheduleProfiles& profiles, JointPlans& plans) {
  const PoolSpeeds speeds = speeds_of(request, known, seed);
  const std::int64_t ranks = seed.tp * seed.cp;
  for (Placement& cells : full_placements(request.cluster, {request.gpus, request.gpus / ranks})) {
    if (cells.stage_ranks != ranks) continue;
    for (const std::int64_t stages :
         {seed.pp / 2, seed.pp - 1, seed.pp, seed.pp + 1, 2 * seed.pp}) {
      if (stages < 2 || stages > std::min(request.limits.max_pp, cells.stages() / 2)) continue;
      for (const SplitPlacement& split : split_placements(cells, stages))
        add_near(request, split, seed, speeds, profiles, plans);
    }
  }
  for (const ReplicaPlacement& placement : placements_of_experts(request))
    if (placement.replica_ranks == ranks * seed.pp)
      add_experts_near(request, placement, seed, speeds, plans);
}

std::vector<std::int64_t> expert_ranks_of_parts(const Plan& plan) {
  std::vector<std::int64_t> ranks;
  for (const PoolReplicas& part : plan.replica_pools)
    ranks.push_back(part.replicas * plan.tp * plan.cp / expert_replicas(plan));
  return ranks;
}

}  // namespace shardwright::planner
