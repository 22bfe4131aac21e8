#include "planner/stage_search.hpp"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <mutex>
#include <tuple>

#include "planner/placed_space.hpp"
#include "planner/plan_evaluation.hpp"

namespace shardwright::planner {
namespace {

// Spaces of more placements are not evaluated whole.
constexpr std::size_t kMostPlacements = 400;
// The number of plans whose splits are improved where not all of them are evaluated: the best of
// each placement, and the best of all.
constexpr std::size_t kImprovedOfPlacement = 8, kImproved = 64;
// How often layers move and stages recompute less in turn.
constexpr int kRounds = 3;

// A plan that fits, by its place in the space.
struct PlacedPlan {
  PlacedLook look;
  std::uint32_t placement = 0, cut = 0, index = 0;
  std::vector<std::int64_t> layers;
  // Empty unless the stages differ in the layers that they recompute.
  std::vector<std::int64_t> stage_recompute_layers;

  bool better_than(const PlacedPlan& other) const {
    if (look.score != other.look.score) return look.score < other.look.score;
    return std::tie(placement, cut, index) < std::tie(other.placement, other.cut, other.index);
  }
};

struct PlacedEvaluation {
  Evaluation counts;
  // All plans that fit, and those that are faster than the compared one.
  std::int64_t evaluated = 0, faster = 0;
  // Each plan with the split that has the least score.
  std::vector<PlacedPlan> plans;
};

// True if nothing is asked of what plans recompute.
bool may_recompute_by_stage(const PlanRequest& request) {
  const auto is_free = [](const Constraint& constraint) {
    return constraint.field != PlanField::Recompute &&
           constraint.field != PlanField::RecomputeLayers;
  };
  return request.limits.recompute_by_stage &&
         std::ranges::count(request.limits.recompute, RecomputePolicy::None) > 0 &&
         std::ranges::all_of(request.constraints.fixed, is_free) &&
         std::ranges::all_of(request.constraints.forbidden, is_free);
}

// The evaluation of one cut on one placement.
class PlacedCutEvaluation {
 public:
  PlacedCutEvaluation(const PlanRequest& request, const PlacedSpace& space, std::uint32_t placement,
                      std::uint32_t cut, bool all_splits, const PoolLayerCosts& known,
                      sim::ScheduleProfiles& profiles)
      : request_(request),
        space_(space),
        all_splits_(all_splits),
        known_(known),
        profiles_(profiles) {
    next_.placement = placement;
    next_.cut = cut;
    result_.counts.broken_rules.assign(all_plan_rules().size(), 0);
    result_.counts.broken_constraints.assign(
        request.constraints.fixed.size() + request.constraints.forbidden.size(), 0);
  }

  PlacedEvaluation run() {
    space_.for_each_shape(request_, space_.cuts[next_.cut], [this](const Plan& plan) {
      look_at(plan);
      ++next_.index;
    });
    return std::move(result_);
  }

 private:
  void look_at(Plan plan) {
    plan.stage_layers = any_split(request_.model.layers, plan.chunks());
    const auto rule = plan.stage_layers.empty() ? std::optional(PlanRule::Layers)
                                                : rule_broken_by(request_, plan, true);
    if (rule) return reject(*rule);
    const std::optional<std::size_t> constraint =
        first_broken_constraint(request_.constraints, plan);
    if (constraint) {
      ++result_.counts.space;
      ++result_.counts.broken_constraints[*constraint];
      return;
    }
    if (!cut_) cut_.emplace(request_, space_.placed, space_.cuts[next_.cut], known_, profiles_);
    best_.reset();
    if (all_splits_) {
      for_each_split(request_.model.layers, plan.chunks(),
                     [&](const std::vector<std::int64_t>& layers) {
                       plan.stage_layers = layers;
                       with_split(plan, false);
                     });
    } else {
      loads_ = cut_->loads_of(plan);
      plan.stage_layers = balanced_split(request_.model.layers, loads_);
      with_split(plan, true);
    }
    if (best_) result_.plans.push_back(*std::move(best_));
  }

  void reject(PlanRule rule) {
    ++result_.counts.space;
    ++result_.counts.broken_rules[static_cast<std::size_t>(rule)];
  }

  void with_split(Plan& plan, bool moves_layers) {
    if (const auto rule = rule_broken_by(request_, plan, false)) return reject(*rule);
    ++result_.counts.space;
    next_.look = moves_layers ? cut_->make_fit(plan, loads_) : cut_->look_at(plan);
    const bool fits = next_.look.fits && (!moves_layers || !rule_broken_by(request_, plan, false));
    if (!fits) {
      ++result_.counts.too_large;
      return;
    }
    ++result_.evaluated;
    if (next_.look.analytic < request_.compared_time) ++result_.faster;
    if (best_ && !next_.look.better_than(best_->look)) return;
    next_.layers = plan.stage_layers;
    best_ = next_;
  }

  const PlanRequest& request_;
  const PlacedSpace& space_;
  bool all_splits_;
  const PoolLayerCosts& known_;
  sim::ScheduleProfiles& profiles_;
  std::optional<PlacedCut> cut_;
  std::vector<StageLoad> loads_;
  PlacedPlan next_;
  std::optional<PlacedPlan> best_;
  PlacedEvaluation result_;
};

// The plans of all placements, by closed forms.
class PlacedSearch {
 public:
  PlacedSearch(const PlanRequest& request, const PoolLayerCosts& known, std::int64_t whole_space)
      : request_(request), known_(known), whole_space_(whole_space) {
    const PlacementLimits limits{request.gpus, request.limits.max_pp};
    if (const auto all = all_placements(request.cluster, limits, kMostPlacements))
      choose(*all, true);
    if (!counts_.all_splits) choose(full_placements(request.cluster, limits), false);
  }

  void evaluate() {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> tasks;
    for (std::uint32_t placement = 0; placement < spaces_.size(); ++placement) {
      for (std::uint32_t cut = 0; cut < spaces_[placement].cuts.size(); ++cut)
        tasks.emplace_back(placement, cut);
    }
    std::vector<PlacedEvaluation> results(tasks.size());
    tbb::parallel_for(std::size_t{0}, tasks.size(), [&](std::size_t i) {
      if (request_.stop.stop_requested()) return;
      const auto [placement, cut] = tasks[i];
      results[i] = PlacedCutEvaluation(request_, spaces_[placement], placement, cut,
                                       counts_.all_splits, known_, profiles_.local())
                       .run();
      report(results[i].counts.space, 1.0 / static_cast<double>(tasks.size()));
    });
    for (PlacedEvaluation& each : results) {
      evaluation_.counts.add(each.counts);
      evaluation_.evaluated += each.evaluated;
      evaluation_.faster += each.faster;
      std::ranges::move(each.plans, std::back_inserter(evaluation_.plans));
    }
    sort();
    if (!counts_.all_splits) improve_best();
    if (may_recompute_by_stage(request_)) let_stages_recompute_less();
  }

  // With the `most` best plans.
  StageSearch result(std::size_t most) const {
    StageSearch found{counts_of(request_, evaluation_.counts, 0), counts_, evaluation_.faster, {}};
    found.counts.evaluated = evaluation_.evaluated;
    for (const PlacedPlan& each : evaluation_.plans) {
      if (found.plans.size() == most) break;
      found.plans.push_back({each.look, find(each)});
    }
    return found;
  }

 private:
  Plan find(const PlacedPlan& placed) const {
    Plan found;
    std::uint32_t index = 0;
    const PlacedSpace& space = spaces_[placed.placement];
    space.for_each_shape(request_, space.cuts[placed.cut], [&](const Plan& plan) {
      if (index++ == placed.index) found = plan;
    });
    found.stage_layers = placed.layers;
    found.stage_recompute_layers = placed.stage_recompute_layers;
    if (!placed.stage_recompute_layers.empty()) found.recompute_layers = 0;
    return found;
  }

  void choose(const std::vector<Placement>& placements, bool all) {
    spaces_ = spaces_on(request_, placements);
    counts_.placements = static_cast<std::int64_t>(spaces_.size());
    counts_.all_splits = is_small(request_, spaces_, whole_space_);
    counts_.all_placements = all;
  }

  void report(std::int64_t checked, double share) {
    const std::lock_guard lock(mutex_);
    progress_.checked += checked;
    progress_.share += share;
    progress_.gpus = request_.gpus;
    if (request_.progress) request_.progress(progress_);
  }

  void sort() {
    std::ranges::sort(evaluation_.plans,
                      [](const PlacedPlan& a, const PlacedPlan& b) { return a.better_than(b); });
  }

  void improve_best() {
    std::vector<PlacedPlan*> chosen;
    std::vector<std::size_t> of_placement(spaces_.size());
    for (PlacedPlan& plan : evaluation_.plans) {
      if (chosen.size() < kImproved || of_placement[plan.placement] < kImprovedOfPlacement)
        chosen.push_back(&plan);
      ++of_placement[plan.placement];
    }
    tbb::parallel_for(std::size_t{0}, chosen.size(), [&](std::size_t i) {
      if (!request_.stop.stop_requested()) improve(*chosen[i]);
    });
    sort();
  }

  void improve(PlacedPlan& placed) {
    const PlacedSpace& space = spaces_[placed.placement];
    PlacedCut cut(request_, space.placed, space.cuts[placed.cut], known_, profiles_.local());
    Plan plan = find(placed);
    placed.look = cut.improve(plan, cut.loads_of(plan));
    placed.layers = plan.stage_layers;
  }

  void let_stages_recompute_less() {
    const std::size_t count = std::min(kImproved, evaluation_.plans.size());
    tbb::parallel_for(std::size_t{0}, count, [&](std::size_t i) {
      if (!request_.stop.stop_requested()) recompute_by_stage(evaluation_.plans[i]);
    });
    sort();
  }

  // Layers may then move to where fewer of them run again.
  void recompute_by_stage(PlacedPlan& placed) {
    Plan plan = find(placed);
    if (plan.recompute != RecomputePolicy::Full || plan.recompute_interval > 1 ||
        plan.recompute_group > 1)
      return;
    const PlacedSpace& space = spaces_[placed.placement];
    PlacedCut cut(request_, space.placed, space.cuts[placed.cut], known_, profiles_.local());
    const std::vector<StageLoad> loads = cut.loads_of(plan);
    for (int round = 0; round < kRounds; ++round) {
      cut.recompute_by_stage(plan, loads);
      if (rule_broken_by(request_, plan, false) ||
          first_broken_constraint(request_.constraints, plan))
        return;
      const PlacedLook look = cut.improve(plan, loads);
      if (!look.better_than(placed.look)) return;
      placed.look = look;
      placed.layers = plan.stage_layers;
      placed.stage_recompute_layers = plan.stage_recompute_layers;
    }
  }

  const PlanRequest& request_;
  const PoolLayerCosts& known_;
  std::int64_t whole_space_;
  std::vector<PlacedSpace> spaces_;
  PlacementSearch counts_;
  PlacedEvaluation evaluation_;
  std::shared_ptr<sim::ScheduleProfileStore> store_ = std::make_shared<sim::ScheduleProfileStore>();
  tbb::enumerable_thread_specific<sim::ScheduleProfiles> profiles_{
      [this] { return sim::ScheduleProfiles(store_); }};
  std::mutex mutex_;
  SearchProgress progress_;
};

}  // namespace

StageSearch search_stages(const PlanRequest& request, const PoolLayerCosts& known,
                          std::int64_t whole_space, std::size_t most) {
  PlacedSearch search(request, known, whole_space);
  search.evaluate();
  return search.result(most);
}

}  // namespace shardwright::planner
