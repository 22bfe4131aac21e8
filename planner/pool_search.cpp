#include "planner/pool_search.hpp"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>

#include "core/base/error.hpp"
#include "core/spec/pools.hpp"
#include "planner/layer_cost_cache.hpp"
#include "planner/placed_plans.hpp"
#include "planner/placed_space.hpp"
#include "planner/plan_evaluation.hpp"
#include "planner/replica_search.hpp"
#include "sim/step/simulate.hpp"

namespace shardwright::planner {
namespace {

// Spaces of more placements are not evaluated whole.
constexpr std::size_t kMostPlacements = 400;
// The number of plans whose splits are improved where not all of them are evaluated: the best of
// each placement, and the best of all.
constexpr std::size_t kImprovedOfPlacement = 8, kImproved = 64;
// How often layers move and stages recompute less in turn.
constexpr int kRounds = 3;
// The plans that are simulated: those that are slower than the worst plan listed by at most the
// error of the analytic level on mixed clusters (docs/models/pools.md), as long as there are not
// more.
constexpr double kNear = 1.05;
constexpr std::size_t kMostSimulated = 96;
// The number of plans that are simulated at once.
constexpr std::size_t kAtOnce = 4;

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
  // Of each plan the split with the least score.
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

  // Best first.
  const std::vector<PlacedPlan>& plans() const { return evaluation_.plans; }
  const PlacementSearch& placements() const { return counts_; }
  std::int64_t faster_than_compared() const { return evaluation_.faster; }

  SearchCounts counts(std::int64_t simulated) const {
    SearchCounts counts = counts_of(request_, evaluation_.counts, simulated);
    counts.evaluated = evaluation_.evaluated;
    return counts;
  }

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

 private:
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
      PlacedLook look = cut.recompute_by_stage(plan, loads);
      if (rule_broken_by(request_, plan, false) ||
          first_broken_constraint(request_.constraints, plan))
        return;
      look = cut.improve(plan, loads);
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

PoolLayerCosts caches_of(const ClusterSpec& cluster) {
  PoolLayerCosts caches;
  for (const std::string& pool : names_of_pools(cluster))
    caches[pool] = std::make_shared<LayerCostCache>();
  return caches;
}

// Plans of one layout have the same degrees and lie on the same pools in the same order.
auto layout_of(const Plan& plan) {
  return std::tuple(plan.tp, plan.pp, plan.cp, plan.ep, plan.zero_stage == 3, pools_of(plan));
}

class PoolSearch {
 public:
  explicit PoolSearch(const PlanRequest& request)
      : request_(request),
        caches_(caches_of(request.cluster)),
        placed_(request_, caches_, kWholeSpace) {}

  SearchResult run() {
    if (request_.compared_time) result_.faster_than_compared = 0;
    for (const std::string& pool : names_of_pools(request_.cluster)) search_alone(pool);
    if (!request_.validated_only) search_placed();
    result_.partial = request_.stop.stop_requested();
    list_best();
    if (result_.plans.empty() && !result_.partial && request_.advice) explain();
    return std::move(result_);
  }

 private:
  PlanRequest request_for(const std::string& pool) const {
    PlanRequest own = request_on_pool(request_, pool);
    own.layer_costs = caches_.at(pool);
    return own;
  }

  // Of one pool at least, which the check of the request asks for.
  static bool multiplies(const PlanRequest& own) {
    return own.cluster.accelerator.matrix.of(own.precision) > FlopPerSecond();
  }

  void search_alone(const std::string& pool) {
    const PlanRequest own = request_for(pool);
    PoolAlone alone{pool, own.gpus, std::nullopt};
    if (multiplies(own)) {
      SearchResult found = search(own);
      add(found.counts);
      if (found.faster_than_compared) *result_.faster_than_compared += *found.faster_than_compared;
      if (found.best_validated) keep_validated(on_pool(*std::move(found.best_validated), pool));
      for (PlanCandidate& each : found.plans) candidates_.push_back(on_pool(std::move(each), pool));
      if (!found.plans.empty()) alone.best = candidates_[candidates_.size() - found.plans.size()];
    }
    result_.pools.push_back(std::move(alone));
  }

  static PlanCandidate on_pool(PlanCandidate candidate, const std::string& pool) {
    candidate.plan.stage_pools.assign(static_cast<std::size_t>(candidate.plan.pp), pool);
    return candidate;
  }

  void keep_validated(PlanCandidate candidate) {
    std::optional<PlanCandidate>& best = result_.best_validated;
    if (!best || candidate.score < best->score) best = std::move(candidate);
  }

  void search_placed() {
    placed_.evaluate();
    if (request_.places_replicas) replicas_ = search_replicas(request_, caches_, kWholeSpace);
    const std::int64_t simulated = simulate_placed();
    add(placed_.counts(simulated));
    add(replicas_.counts);
    if (request_.compared_time)
      *result_.faster_than_compared += placed_.faster_than_compared() + replicas_.faster;
    result_.placed = placed_.placements();
    result_.placed->replica_placements = replicas_.placements;
    result_.placed->all_shares = replicas_.all;
    result_.placed->best = std::move(best_placed_);
  }

  // Plans on several pools, best first.
  std::vector<LookedAtPlan> ranked() const {
    std::vector<LookedAtPlan> plans;
    for (const PlacedPlan& each : placed_.plans()) {
      if (plans.size() == kMostSimulated) break;
      plans.push_back({each.look, placed_.find(each)});
    }
    plans.insert(plans.end(), replicas_.plans.begin(), replicas_.plans.end());
    std::ranges::stable_sort(plans, {}, [](const LookedAtPlan& each) { return each.look.score; });
    if (plans.size() > kMostSimulated) plans.resize(kMostSimulated);
    return plans;
  }

  // Returns the number of plans that were simulated. The best one always is.
  std::int64_t simulate_placed() {
    const std::vector<LookedAtPlan> plans = ranked();
    const std::size_t most = plans.size();
    std::size_t next = 0;
    while (next < most && !request_.stop.stop_requested()) {
      const double limit = next == 0 ? std::numeric_limits<double>::infinity() : largest_score();
      std::vector<LookedAtPlan> batch;
      for (; next < most && batch.size() < kAtOnce && plans[next].look.score <= limit; ++next)
        batch.push_back(plans[next]);
      if (batch.empty()) break;
      simulate(batch);
    }
    return static_cast<std::int64_t>(next);
  }

  // The score by the analytic level above which no plan is expected among the best.
  double largest_score() const {
    const std::vector<PlanCandidate> best = listed();
    const auto top = static_cast<std::size_t>(request_.top);
    return best.size() < top ? std::numeric_limits<double>::infinity()
                             : kNear * best[top - 1].score;
  }

  void simulate(const std::vector<LookedAtPlan>& batch) {
    std::vector<std::optional<PlanCandidate>> simulated(batch.size());
    tbb::parallel_for(std::size_t{0}, batch.size(), [&](std::size_t i) {
      const Scenario scenario = scenario_of(request_, batch[i].plan);
      auto result = sim::simulate_step(scenario, request_.stop);
      if (!result) return;
      simulated[i] = rated(scenario, *std::move(result), request_.objective);
      simulated[i]->analytic = batch[i].look.analytic;
      simulated[i]->bound = batch[i].look.bound;
      simulated[i]->validated = !request_.validated_on;
    });
    for (std::optional<PlanCandidate>& each : simulated) {
      if (!each) continue;
      if (!best_placed_ || each->score < best_placed_->score) best_placed_ = each;
      candidates_.push_back(*std::move(each));
    }
  }

  // The candidates, best first; of each layout one if the request asks for it.
  std::vector<PlanCandidate> listed() const {
    std::vector<PlanCandidate> plans = candidates_;
    std::ranges::stable_sort(plans, {}, &PlanCandidate::score);
    if (!request_.one_per_layout) return plans;
    std::vector<PlanCandidate> kept;
    for (PlanCandidate& plan : plans) {
      const bool known = std::ranges::any_of(kept, [&](const PlanCandidate& each) {
        return layout_of(each.plan) == layout_of(plan.plan);
      });
      if (!known) kept.push_back(std::move(plan));
    }
    return kept;
  }

  void list_best() {
    for (const PlanCandidate& each : candidates_)
      if (each.validated) keep_validated(each);
    result_.plans = listed();
    if (std::ssize(result_.plans) > request_.top)
      result_.plans.resize(static_cast<std::size_t>(request_.top));
    if (result_.plans.empty() || result_.plans.front().validated) result_.best_validated.reset();
  }

  // By the pool whose accelerators have the most memory together.
  void explain() {
    const auto memory = [this](const std::string& pool) {
      const PlanRequest own = request_for(pool);
      return available_memory(own) * static_cast<double>(own.gpus);
    };
    std::vector<std::string> pools = names_of_pools(request_.cluster);
    std::erase_if(pools,
                  [this](const std::string& pool) { return !multiplies(request_for(pool)); });
    const std::string most = *std::ranges::max_element(pools, {}, memory);
    PlanRequest own = request_for(most);
    own.advice = true;
    result_.infeasible = search(own).infeasible;
    if (result_.infeasible) result_.infeasible->pool = most;
  }

  void add(const SearchCounts& more) {
    SearchCounts& counts = result_.counts;
    counts.space += more.space;
    counts.evaluated += more.evaluated;
    counts.simulated += more.simulated;
    for (const Rejection& rejection : more.rejected) {
      const auto known = std::ranges::find(counts.rejected, rejection.rule, &Rejection::rule);
      if (known == counts.rejected.end())
        counts.rejected.push_back(rejection);
      else
        known->count += rejection.count;
    }
  }

  const PlanRequest& request_;
  PoolLayerCosts caches_;
  PlacedSearch placed_;
  ReplicaSearch replicas_;
  // Simulated.
  std::vector<PlanCandidate> candidates_;
  // Of those on several pools.
  std::optional<PlanCandidate> best_placed_;
  SearchResult result_;
};

}  // namespace

PlanRequest request_on_pool(const PlanRequest& request, const std::string& pool) {
  PlanRequest own = request;
  own.cluster = *pool_cluster(request.cluster, pool);
  own.gpus = pool_size(request.cluster, pool, request.gpus);
  own.layer_costs = nullptr;
  own.front = own.advice = own.takes_pools = own.look_beyond_margin = false;
  own.layouts = 0;
  own.progress = nullptr;
  own.found = nullptr;
  own.compared.reset();
  own.validated = request.validated_on ? request.validated_on(own.cluster) : nullptr;
  own.validated_on = nullptr;
  return own;
}

SearchResult search_pools(const PlanRequest& request) {
  return PoolSearch(request).run();
}

std::optional<PlacedBest> best_placed(const PlanRequest& request, std::int64_t whole_space) {
  const PoolLayerCosts caches = caches_of(request.cluster);
  PlacedSearch search(request, caches, whole_space);
  search.evaluate();
  if (search.plans().empty()) return std::nullopt;
  const PlacedPlan& best = search.plans().front();
  return PlacedBest{search.find(best), best.look.analytic, best.look.score};
}

}  // namespace shardwright::planner
