#include "planner/replica_search.hpp"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <utility>

#include "core/spec/pools.hpp"
#include "planner/divisions.hpp"
#include "planner/layer_cost_cache.hpp"
#include "planner/placed_space.hpp"
#include "planner/plan_evaluation.hpp"
#include "sim/step/analytic.hpp"
#include "sim/step/pool_links.hpp"

namespace shardwright::planner {
namespace {

// The plans of each cut on a placement that are kept.
constexpr std::size_t kKeptOfCut = 16;

// Calls `visit` for each choice of two or more of the pools, in their order.
void for_each_choice(const ClusterSpec& cluster, std::int64_t gpus,
                     const std::function<void(const std::vector<SizedPool>&)>& visit) {
  const std::vector<SizedPool> all = pools_within(cluster, gpus);
  for (std::uint64_t choice = 0; choice < std::uint64_t{1} << all.size(); ++choice) {
    std::vector<SizedPool> chosen;
    for (std::size_t pool = 0; pool < all.size(); ++pool)
      if ((choice >> pool & 1) != 0) chosen.push_back(all[pool]);
    if (chosen.size() > 1) visit(chosen);
  }
}

// Appends `placement` with every number of replicas of each pool that it does not have yet, on up
// to so many accelerators.
void append_all(const std::vector<SizedPool>& pools, std::int64_t gpus, ReplicaPlacement& placement,
                std::vector<ReplicaPlacement>& placements) {
  const std::size_t next = placement.parts.size();
  if (next == pools.size()) return placements.push_back(placement);
  const std::int64_t ranks = placement.replica_ranks, before = placement.replicas() * ranks;
  if (before % pools[next].domain != 0) return;
  const std::int64_t most = std::min(pools[next].accelerators, gpus - before) / ranks;
  for (std::int64_t replicas = 1; replicas <= most; ++replicas) {
    placement.parts.push_back({pools[next].name, replicas, 1});
    append_all(pools, gpus, placement, placements);
    placement.parts.pop_back();
  }
}

// As many replicas as fit, those of the first pools first, or those of the last pools. None where
// the scale-up domains of a pool leave no number of replicas before it.
std::optional<ReplicaPlacement> full_placement(const std::vector<SizedPool>& pools,
                                               std::int64_t ranks, std::int64_t gpus,
                                               bool from_last) {
  std::int64_t left = gpus / ranks - std::ssize(pools);
  if (left < 0) return std::nullopt;
  ReplicaPlacement placement{{}, ranks};
  for (const SizedPool& pool : pools) placement.parts.push_back({pool.name, 1, 1});
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const std::size_t pool = from_last ? pools.size() - 1 - i : i;
    const std::int64_t more = std::min(pools[pool].accelerators / ranks - 1, left);
    placement.parts[pool].replicas += more;
    left -= more;
  }
  std::int64_t before = 0;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    std::int64_t& replicas = placement.parts[i].replicas;
    const std::int64_t domain = i + 1 < pools.size() ? pools[i + 1].domain : 1;
    while (replicas > 0 && (before + replicas) * ranks % domain != 0) --replicas;
    if (replicas == 0) return std::nullopt;
    before += replicas;
  }
  return placement;
}

// The plans of one cut on one placement.
class ReplicaCut {
 public:
  ReplicaCut(const PlanRequest& request, const ReplicaPlacement& placement, const Plan& cut,
             const PoolLayerCosts& known, sim::ScheduleProfiles& profiles)
      : request_(request) {
    Plan whole = cut;
    whole.pp = 1;
    whole.dp = placement.replicas() * placement.replica_ranks / (cut.tp * cut.cp);
    for (const PoolReplicas& part : placement.parts) {
      pools_.push_back(*pool_cluster(request.cluster, part.pool));
      outside_.push_back(sim::seen_from_outside(pools_.back(), request.cluster.between_pools));
      PlanRequest own = request;
      own.cluster = pools_.back();
      available_.push_back(available_memory(own));
    }
    for (const ClusterSpec& pool : pools_) {
      layers_.push_back(known.at(pool.name)->of(request.model, pool, request.stack, whole));
      costs_.emplace_back(
          sim::CutContext{request.model, pool, request.stack, *layers_.back(), {}, outside_},
          profiles);
    }
  }

  // Seconds of a microbatch on each pool, roughly: what shares of the batch are compared by.
  std::vector<double> microbatch_times(const Plan& plan) const {
    std::vector<double> times;
    for (const auto& layers : layers_)
      times.push_back(layer_time(*layers, plan) *
                      static_cast<double>(request_.model.layers / plan.pp + 1));
    return times;
  }

  // `plan` obeys the rules.
  PlacedLook look_at(const Plan& plan) {
    PlacedLook look;
    StepForms forms;
    std::vector<Plan> parts;
    for (std::size_t part = 0; part < pools_.size(); ++part) {
      parts.push_back(plan_of_part(plan, part));
      const Bytes peak = costs_[part].memory(parts.back());
      const double filled = peak / available_[part];
      if (filled > look.filled) forms.peak = peak;
      look.filled = std::max(look.filled, filled);
    }
    look.fits = look.filled <= 1.0;
    if (!look.fits) return look;
    std::vector<const sim::StageCosts*> costs;
    for (std::size_t part = 0; part < pools_.size(); ++part) {
      costs.push_back(&costs_[part].costs());
      const Seconds bound = sim::bound_step(*costs.back(), parts[part]);
      look.bound = std::max(look.bound, bound);
      look.analytic =
          std::max(look.analytic, sim::analytic_step(*costs.back(), parts[part], bound));
    }
    forms.analytic = look.analytic;
    look.score = score_of_closed_forms(request_, plan, forms, [&] {
      std::vector<Seconds> computing;
      for (const sim::StageCosts* of_part : costs)
        std::ranges::copy(sim::computing_of_stages(*of_part), std::back_inserter(computing));
      return computing;
    });
    return look;
  }

 private:
  const PlanRequest& request_;
  std::vector<ClusterSpec> pools_, outside_;
  std::vector<Bytes> available_;
  std::vector<std::shared_ptr<const sim::LayerCosts>> layers_;
  // Caches stay where they are, because they refer to what they own.
  std::deque<sim::StageCostCache> costs_;
};

std::vector<std::int64_t> members_of(const ReplicaPlacement& placement) {
  std::vector<std::int64_t> members;
  for (const PoolReplicas& part : placement.parts) members.push_back(part.replicas);
  return members;
}

// A placement with the cuts of its plans.
struct ReplicaSpace {
  ReplicaPlacement placement;
  SearchLimits limits;
  std::vector<Plan> cuts;
};

SpaceRequest space_request(const PlanRequest& request, const ReplicaSpace& space,
                           std::int64_t gpus) {
  return {request.model,   request.cluster,   request.stack, gpus,        request.global_batch,
          request.seq_len, request.precision, request.lora,  space.limits};
}

ReplicaSpace space_on(const PlanRequest& request, const ReplicaPlacement& placement) {
  ReplicaSpace space{placement, request.limits, {}};
  std::vector<ClusterSpec> pools;
  for (const PoolReplicas& part : placement.parts)
    pools.push_back(*pool_cluster(request.cluster, part.pool));
  space.limits.max_tp = largest_tp_on(pools, request.limits);
  space.limits.rank_orders = {pipeline_inside_data()};
  space.cuts = layer_cuts(space_request(request, space, placement.replica_ranks));
  std::erase_if(space.cuts, [&](const Plan& cut) {
    const std::int64_t ranks = cut.tp * cut.cp;
    return placement.replica_ranks % ranks != 0 || ranks % (cut.ep * cut.expert_tp) != 0 ||
           placement.replica_ranks / ranks > request.limits.max_pp;
  });
  return space;
}

// Calls `visit` with each plan of the cut; its shares of the batch are open.
void for_each_shape(const PlanRequest& request, const ReplicaSpace& space, const Plan& cut,
                    const std::function<void(const Plan&)>& visit) {
  const ReplicaPlacement& placement = space.placement;
  for_each_plan_of_depth(
      space_request(request, space, placement.replicas() * placement.replica_ranks), cut,
      placement.replica_ranks / (cut.tp * cut.cp), visit);
}

// The plans of one cut on one placement, looked at.
struct ReplicaCutResult {
  Evaluation counts;
  std::int64_t evaluated = 0, faster = 0;
  std::vector<LookedAtPlan> plans;
};

class ReplicaCutEvaluation {
 public:
  ReplicaCutEvaluation(const PlanRequest& request, const ReplicaSpace& space, const Plan& cut,
                       bool all, const PoolLayerCosts& known, sim::ScheduleProfiles& profiles)
      : request_(request),
        space_(space),
        cut_(cut),
        all_(all),
        costs_(request, space.placement, cut, known, profiles) {
    result_.counts.broken_rules.assign(all_plan_rules().size(), 0);
    result_.counts.broken_constraints.assign(
        request.constraints.fixed.size() + request.constraints.forbidden.size(), 0);
  }

  ReplicaCutResult run() {
    for_each_shape(request_, space_, cut_, [this](const Plan& plan) { look_at(plan); });
    std::ranges::stable_sort(result_.plans, {},
                             [](const LookedAtPlan& each) { return each.look.score; });
    if (result_.plans.size() > kKeptOfCut) result_.plans.resize(kKeptOfCut);
    return std::move(result_);
  }

 private:
  void look_at(Plan plan) {
    if (plan.global_batch % plan.micro_batch != 0) return reject(PlanRule::GlobalBatch);
    plan.replica_pools = space_.placement.parts;
    for (const Division& share : shares_of(plan)) {
      for (std::size_t part = 0; part < share.size(); ++part)
        plan.replica_pools[part].microbatches = share[part];
      with_shares(plan);
    }
  }

  // All shares, or those whose slowest pool takes least.
  std::vector<Division> shares_of(const Plan& plan) const {
    const std::vector<std::int64_t> members = members_of(space_.placement);
    const std::int64_t microbatches = plan.global_batch / plan.micro_batch;
    if (!all_)
      return balanced_divisions(members, microbatches,
                                {costs_.microbatch_times(plan), plan.pp - 1});
    std::vector<Division> shares;
    for_each_division(members, microbatches,
                      [&](const Division& share) { shares.push_back(share); });
    return shares;
  }

  void reject(PlanRule rule) {
    ++result_.counts.space;
    ++result_.counts.broken_rules[static_cast<std::size_t>(rule)];
  }

  void with_shares(const Plan& plan) {
    if (const auto rule = rule_broken_by(request_, plan, false)) return reject(*rule);
    ++result_.counts.space;
    if (const auto constraint = first_broken_constraint(request_.constraints, plan)) {
      ++result_.counts.broken_constraints[*constraint];
      return;
    }
    const PlacedLook look = costs_.look_at(plan);
    if (!look.fits) {
      ++result_.counts.too_large;
      return;
    }
    ++result_.evaluated;
    if (look.analytic < request_.compared_time) ++result_.faster;
    result_.plans.push_back({look, plan});
  }

  const PlanRequest& request_;
  const ReplicaSpace& space_;
  const Plan& cut_;
  bool all_;
  ReplicaCut costs_;
  ReplicaCutResult result_;
};

// The number of plans, each way to share the batch counted; no more than one above `most`.
std::int64_t count_plans(const PlanRequest& request, const std::vector<ReplicaSpace>& spaces,
                         std::int64_t most) {
  std::int64_t plans = 0;
  for (const ReplicaSpace& space : spaces) {
    const std::vector<std::int64_t> members = members_of(space.placement);
    for (const Plan& cut : space.cuts) {
      std::int64_t shares = 0;
      const std::int64_t microbatches = request.global_batch / cut.micro_batch;
      // Counting is work, too.
      if (plans > most || most_divisions(members, microbatches) > 10.0 * static_cast<double>(most))
        return most + 1;
      if (request.global_batch % cut.micro_batch == 0)
        for_each_division(members, microbatches, [&](const Division&) { ++shares; });
      for_each_shape(request, space, cut, [&](const Plan&) { plans += shares; });
    }
  }
  return plans;
}

std::vector<ReplicaSpace> spaces_on(const PlanRequest& request, bool all) {
  std::vector<ReplicaSpace> spaces;
  for (const ReplicaPlacement& placement : replica_placements(request.cluster, request.gpus, all))
    spaces.push_back(space_on(request, placement));
  std::erase_if(spaces, [](const ReplicaSpace& space) { return space.cuts.empty(); });
  return spaces;
}

}  // namespace

std::int64_t ReplicaPlacement::replicas() const {
  std::int64_t all = 0;
  for (const PoolReplicas& part : parts) all += part.replicas;
  return all;
}

std::vector<ReplicaPlacement> replica_placements(const ClusterSpec& cluster, std::int64_t gpus,
                                                 bool all) {
  std::vector<ReplicaPlacement> placements;
  for_each_choice(cluster, gpus, [&](const std::vector<SizedPool>& pools) {
    std::int64_t smallest = gpus;
    for (const SizedPool& pool : pools) smallest = std::min(smallest, pool.accelerators);
    for (std::int64_t ranks = 1; ranks <= smallest; ++ranks) {
      if (all) {
        ReplicaPlacement placement{{}, ranks};
        append_all(pools, gpus, placement, placements);
        continue;
      }
      const bool divides = std::ranges::any_of(
          pools, [&](const SizedPool& pool) { return pool.accelerators % ranks == 0; });
      for (const bool from_last : {false, true}) {
        if (!divides) continue;
        const auto full = full_placement(pools, ranks, gpus, from_last);
        const bool known = full && !placements.empty() && placements.back().parts == full->parts &&
                           placements.back().replica_ranks == ranks;
        if (full && !known) placements.push_back(*full);
      }
    }
  });
  return placements;
}

ReplicaSearch search_replicas(const PlanRequest& request, const PoolLayerCosts& known,
                              std::int64_t whole_space) {
  // More placements than this are not counted.
  constexpr std::int64_t kMostAccelerators = 64;
  ReplicaSearch found;
  std::vector<ReplicaSpace> spaces;
  if (size_of_pools(request.cluster, request.gpus) <= kMostAccelerators) {
    spaces = spaces_on(request, true);
    found.all = count_plans(request, spaces, whole_space) <= whole_space;
  }
  if (!found.all) spaces = spaces_on(request, false);
  found.placements = std::ssize(spaces);
  std::vector<std::pair<std::size_t, std::size_t>> tasks;
  for (std::size_t space = 0; space < spaces.size(); ++space)
    for (std::size_t cut = 0; cut < spaces[space].cuts.size(); ++cut)
      tasks.emplace_back(space, cut);
  std::vector<ReplicaCutResult> results(tasks.size());
  const auto store = std::make_shared<sim::ScheduleProfileStore>();
  tbb::enumerable_thread_specific<sim::ScheduleProfiles> profiles(
      [&store] { return sim::ScheduleProfiles(store); });
  tbb::parallel_for(std::size_t{0}, tasks.size(), [&](std::size_t i) {
    if (request.stop.stop_requested()) return;
    const ReplicaSpace& space = spaces[tasks[i].first];
    results[i] = ReplicaCutEvaluation(request, space, space.cuts[tasks[i].second], found.all, known,
                                      profiles.local())
                     .run();
  });
  Evaluation counts;
  std::int64_t evaluated = 0;
  for (ReplicaCutResult& each : results) {
    counts.add(each.counts);
    evaluated += each.evaluated;
    found.faster += each.faster;
    std::ranges::move(each.plans, std::back_inserter(found.plans));
  }
  std::ranges::stable_sort(found.plans, {},
                           [](const LookedAtPlan& each) { return each.look.score; });
  found.counts = counts_of(request, counts, 0);
  found.counts.evaluated = evaluated;
  return found;
}

}  // namespace shardwright::planner
