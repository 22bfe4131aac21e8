#include "planner/pool_search.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "core/spec/pools.hpp"
#include "planner/joint_search.hpp"
#include "planner/layer_cost_cache.hpp"
#include "planner/placed_plans.hpp"
#include "planner/plan_evaluation.hpp"
#include "planner/replica_search.hpp"
#include "planner/stage_search.hpp"
#include "sim/step/simulate.hpp"

namespace shardwright::planner {
namespace {

// The plans that are simulated: those that are slower than the worst plan listed by at most the
// error of the analytic level on mixed clusters (docs/models/pools.md), as long as there are not
// more.
constexpr double kNear = 1.05;
constexpr std::size_t kMostSimulated = 96;
// The number of plans that are simulated at once.
constexpr std::size_t kAtOnce = 4;
// The plans of each kind whose degrees the joint search takes.
constexpr std::size_t kSeedsOfKind = 6;

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

// What the joint search takes of a plan.
auto seed_of(const Plan& plan) {
  return std::tuple(plan.tp, plan.cp, plan.pp, plan.ep, plan.micro_batch, plan.zero_stage,
                    plan.shard_group, plan.schedule, plan.recompute);
}

class PoolSearch {
 public:
  explicit PoolSearch(const PlanRequest& request)
      : request_(request), caches_(caches_of(request.cluster)) {}

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
    stages_ = search_stages(request_, caches_, kWholeSpace, kMostSimulated);
    if (request_.places_replicas) {
      replicas_ = search_replicas(request_, caches_, kWholeSpace);
      joint_ = search_joint(request_, caches_, seeds(), kWholeJointSpace);
    }
    result_.counts.simulated += simulate_placed();
    add(stages_.counts);
    add(replicas_.counts);
    add(joint_.counts);
    if (request_.compared_time)
      *result_.faster_than_compared += stages_.faster + replicas_.faster + joint_.faster;
    result_.placed = stages_.placements;
    result_.placed->replica_placements = replicas_.placements;
    result_.placed->all_shares = replicas_.all;
    result_.placed->joint_plans = joint_.counts.evaluated;
    result_.placed->all_joint = joint_.all;
    result_.placed->best = std::move(best_placed_);
  }

  // The best plans of each kind with different degrees.
  std::vector<Plan> seeds() const {
    std::vector<Plan> seeds;
    const auto add = [&](const auto& plans) {
      std::size_t added = 0;
      for (const auto& each : plans) {
        const bool known = std::ranges::any_of(
            seeds, [&](const Plan& seed) { return seed_of(seed) == seed_of(each.plan); });
        if (known) continue;
        seeds.push_back(each.plan);
        if (++added == kSeedsOfKind) return;
      }
    };
    add(candidates_);
    add(stages_.plans);
    add(replicas_.plans);
    return seeds;
  }

  // Plans on several pools, best first.
  std::vector<LookedAtPlan> ranked() const {
    std::vector<LookedAtPlan> plans = stages_.plans;
    plans.insert(plans.end(), replicas_.plans.begin(), replicas_.plans.end());
    plans.insert(plans.end(), joint_.plans.begin(), joint_.plans.end());
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
  StageSearch stages_;
  ReplicaSearch replicas_;
  JointSearch joint_;
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
  const std::vector<LookedAtPlan> plans = search_stages(request, caches, whole_space, 1).plans;
  if (plans.empty()) return std::nullopt;
  return PlacedBest{plans.front().plan, plans.front().look.analytic, plans.front().look.score};
}

}  // namespace shardwright::planner
