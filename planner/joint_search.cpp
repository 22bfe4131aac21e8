#include "planner/joint_search.hpp"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "core/spec/pools.hpp"
#include "planner/joint_plans.hpp"
#include "planner/placed_space.hpp"
#include "sim/step/analytic.hpp"

namespace shardwright::planner {
namespace {

// The plans that moves improve where not all are evaluated, and the rounds of moves of each.
constexpr std::size_t kJointImproved = 4;
constexpr int kJointRounds = 6;
// So many plans whose layers and shares follow from the pools' speeds are evaluated all.
constexpr std::int64_t kFewShapes = 400;
// Of more chunks, layers move between neighbours alone.
constexpr std::size_t kFewChunks = 6;

// Plans that differ from `plan` by one layer of two chunks.
void append_layer_moves(const Plan& plan, std::vector<Plan>& moves) {
  const std::size_t chunks = plan.stage_layers.size();
  for (std::size_t from = 0; from < chunks; ++from) {
    for (std::size_t to = 0; to < chunks; ++to) {
      const std::size_t apart = from < to ? to - from : from - to;
      if (apart == 0 || (chunks > kFewChunks && apart > 1)) continue;
      Plan moved = plan;
      if (move_layer(from, to, moved.stage_layers)) moves.push_back(std::move(moved));
    }
  }
}

// Plans in which one part has more microbatches or experts, and another one fewer. `members` of
// each part have the units.
void append_unit_moves(const Plan& plan, const std::vector<std::int64_t>& members,
                       std::int64_t PoolReplicas::*units, std::vector<Plan>& moves) {
  for (std::size_t from = 0; from < members.size(); ++from) {
    for (std::size_t to = 0; to < members.size(); ++to) {
      if (from == to) continue;
      const std::int64_t common = std::gcd(members[from], members[to]);
      Plan moved = plan;
      moved.replica_pools[from].*units -= members[to] / common;
      moved.replica_pools[to].*units += members[from] / common;
      if (moved.replica_pools[from].*units > 0) moves.push_back(std::move(moved));
    }
  }
}

std::vector<Plan> moves_of(const Plan& plan, std::int64_t experts) {
  std::vector<Plan> moves;
  if (splits_replicas(plan)) {
    std::vector<std::int64_t> replicas;
    for (const PoolReplicas& part : plan.replica_pools) replicas.push_back(part.replicas);
    append_layer_moves(plan, moves);
    append_unit_moves(plan, replicas, &PoolReplicas::microbatches, moves);
    return moves;
  }
  Plan numbered = plan;
  for (PoolReplicas& part : numbered.replica_pools)
    if (part.experts == 0) part.experts = experts / plan.ep;
  append_unit_moves(numbered, expert_ranks_of_parts(plan), &PoolReplicas::experts, moves);
  return moves;
}

class JointPlanSearch {
 public:
  explicit JointPlanSearch(const PlanRequest& request) : request_(request) {
    for (const std::string& pool : names_of_pools(request.cluster)) {
      PlanRequest own = request;
      own.cluster = *pool_cluster(request.cluster, pool);
      available_[pool] = available_memory(own);
    }
  }

  JointSearch run(const PoolLayerCosts& known, const std::vector<Plan>& seeds,
                  std::int64_t whole_space) {
    JointPlans all(request_, whole_space);
    add_all_joint(request_, all);
    found_.all = !all.is_full();
    if (found_.all) {
      evaluate(all);
      return std::move(found_);
    }
    evaluate_part(known, seeds, whole_space);
    improve_best();
    return std::move(found_);
  }

 private:
  // Where no plan of another kind leads to one, the first of many shapes have to do.
  void evaluate_part(const PoolLayerCosts& known, const std::vector<Plan>& seeds,
                     std::int64_t whole_space) {
    JointPlans shapes(request_, kFewShapes);
    add_joint_shapes(request_, known, profiles_.local(), shapes);
    if (!shapes.is_full()) return evaluate(shapes);
    JointPlans near(request_, whole_space);
    for (const Plan& seed : seeds) add_joint_near(request_, known, seed, profiles_.local(), near);
    evaluate(near.plans().empty() ? shapes : near);
  }

  PlacedLook look_at(const Plan& plan) {
    const Scenario scenario{request_.model, request_.cluster, request_.stack, plan};
    const sim::StepEstimate estimate = sim::estimate_replicas(scenario, profiles_.local());
    PlacedLook look;
    StepForms forms{estimate.analytic, {}};
    for (const sim::PoolPeak& peak : estimate.peaks) {
      const double filled = peak.peak / available_.at(peak.pool);
      if (filled > look.filled) forms.peak = peak.peak;
      look.filled = std::max(look.filled, filled);
    }
    look.fits = look.filled <= 1.0;
    look.bound = estimate.bound;
    look.analytic = estimate.analytic;
    look.score = score_of_closed_forms(request_, plan, forms, [&] { return estimate.computing; });
    return look;
  }

  // Keeps the plans that fit.
  void evaluate(const JointPlans& plans) {
    std::vector<std::optional<PlacedLook>> looks(plans.plans().size());
    tbb::parallel_for(std::size_t{0}, looks.size(), [&](std::size_t i) {
      if (!request_.stop.stop_requested()) looks[i] = look_at(plans.plans()[i]);
    });
    Evaluation counts = plans.counts();
    std::int64_t fitting = 0;
    for (std::size_t i = 0; i < looks.size(); ++i) {
      if (!looks[i]) continue;
      if (!looks[i]->fits) {
        ++counts.too_large;
        continue;
      }
      ++fitting;
      if (looks[i]->analytic < request_.compared_time) ++found_.faster;
      found_.plans.push_back({*looks[i], plans.plans()[i]});
    }
    found_.counts = counts_of(request_, counts, 0);
    found_.counts.evaluated = fitting;
    sort();
  }

  void sort() {
    std::ranges::stable_sort(found_.plans, {},
                             [](const LookedAtPlan& each) { return each.look.score; });
  }

  void improve_best() {
    const std::size_t count = std::min(kJointImproved, found_.plans.size());
    tbb::parallel_for(std::size_t{0}, count, [&](std::size_t i) { improve(found_.plans[i]); });
    sort();
  }

  // Takes the best move of each round for as long as one helps.
  void improve(LookedAtPlan& best) {
    const std::int64_t experts = request_.model.moe ? request_.model.moe->experts : 0;
    for (int round = 0; round < kJointRounds && !request_.stop.stop_requested(); ++round) {
      bool improved = false;
      for (Plan& moved : moves_of(best.plan, experts)) {
        if (rule_broken_by(request_, moved, false) ||
            first_broken_constraint(request_.constraints, moved))
          continue;
        const PlacedLook look = look_at(moved);
        if (!look.better_than(best.look)) continue;
        best = {look, std::move(moved)};
        improved = true;
      }
      if (!improved) return;
    }
  }

  const PlanRequest& request_;
  std::map<std::string, Bytes> available_;
  std::shared_ptr<sim::ScheduleProfileStore> store_ = std::make_shared<sim::ScheduleProfileStore>();
  tbb::enumerable_thread_specific<sim::ScheduleProfiles> profiles_{
      [this] { return sim::ScheduleProfiles(store_); }};
  JointSearch found_;
};

}  // namespace

JointSearch search_joint(const PlanRequest& request, const PoolLayerCosts& known,
                         const std::vector<Plan>& seeds, std::int64_t whole_space) {
  return JointPlanSearch(request).run(known, seeds, whole_space);
}

}  // namespace shardwright::planner
