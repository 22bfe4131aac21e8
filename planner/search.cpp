#include "planner/search.hpp"

#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "core/base/error.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/pools.hpp"
#include "planner/batch_knee.hpp"
#include "planner/layer_cost_cache.hpp"
#include "planner/objective.hpp"
#include "planner/plan_evaluation.hpp"
#include "planner/pool_search.hpp"
#include "planner/request_check.hpp"
#include "sim/step/analytic.hpp"
#include "sim/step/simulate.hpp"

namespace shardwright::planner {
namespace {

// The number of plans that are simulated at once. It is fixed, so that the number of simulations
// does not depend on the number of threads.
constexpr std::size_t kBatch = 4;
// The largest number of members of a Pareto front.
constexpr std::size_t kLargestFront = 10;

class Search {
 public:
  explicit Search(const PlanRequest& request)
      : request_(request), cuts_(layer_cuts(space_of(request))) {}

  SearchResult run() {
    evaluate();
    std::vector<EvaluatedPlan>& plans = evaluation_.plans;
    const std::vector<EvaluatedPlan> layouts = fastest_layouts();
    sort_by_bound(plans);
    simulate_best(plans, static_cast<std::size_t>(request_.top), request_.one_per_layout, best_,
                  true);
    SearchResult result;
    result.best_validated = find_best_validated();
    result.best_beyond = find_best_beyond();
    if (request_.front) simulate_front();
    count_variants();
    count_faster(result);
    result.layouts = simulate_all(layouts);
    result.counts = counts_of(request_, evaluation_, static_cast<std::int64_t>(simulated_.size()));
    result.partial = request_.stop.stop_requested();
    for (Simulated& each : best_) result.plans.push_back(std::move(each.candidate));
    result.front = std::move(front_);
    result.trade_offs = trade_offs_;
    if (plans.empty() && !result.partial && request_.advice)
      result.infeasible = explain_infeasible(request_, evaluation_);
    return result;
  }

 private:
  struct Simulated {
    EvaluatedPlan evaluated;
    PlanCandidate candidate;

    bool better_than(const Simulated& other) const {
      if (candidate.score != other.candidate.score) return candidate.score < other.candidate.score;
      return evaluated.comes_before(other.evaluated);
    }
  };

  void evaluate() {
    evaluation_ = evaluate_space(request_, cuts_, [this](const Evaluation& of_cut) {
      const std::lock_guard lock(progress_mutex_);
      progress_.checked += of_cut.space;
      progress_.share += 1.0 / static_cast<double>(cuts_.size());
      report();
      return false;
    });
    progress_.share = 1.0;  // The parts add up to a little less or more.
  }

  void report() const {
    if (!request_.progress) return;
    SearchProgress progress = progress_;
    progress.gpus = request_.gpus;
    request_.progress(progress);
  }

  void report_simulated() {
    progress_.simulated = static_cast<std::int64_t>(simulated_.size());
    report();
  }

  void report_best() const {
    if (!request_.found) return;
    std::vector<PlanCandidate> plans;
    for (const Simulated& each : best_) plans.push_back(each.candidate);
    request_.found(plans);
  }

  static void sort_by_bound(std::vector<EvaluatedPlan>& plans) {
    std::sort(plans.begin(), plans.end(), [](const EvaluatedPlan& a, const EvaluatedPlan& b) {
      return a.score_bound != b.score_bound ? a.score_bound < b.score_bound : a.comes_before(b);
    });
  }

  // Finds the best `wanted` of plans that are sorted by their bounds. Branch and bound: once the
  // worst of the best plans is below all remaining bounds, the result is final. With one plan per
  // layout, a plan whose bound is above the best of its layout cannot replace it. Reports the
  // progress if `reports`.
  void simulate_best(const std::vector<EvaluatedPlan>& plans, std::size_t wanted,
                     bool one_per_layout, std::vector<Simulated>& best, bool reports) {
    // Even a search that was stopped during the evaluation has a best plan: that of its first
    // batch.
    for (std::size_t next = 0;
         next < plans.size() && (next == 0 || !request_.stop.stop_requested());) {
      std::vector<EvaluatedPlan> batch;
      for (; next < plans.size() && batch.size() < kBatch; ++next) {
        const bool full = best.size() == wanted;
        if (full && plans[next].score_bound > best.back().candidate.score) break;
        if (!one_per_layout || !is_beaten(plans[next], best)) batch.push_back(plans[next]);
      }
      if (batch.empty()) return;
      for (Simulated& each : simulate(batch)) keep(std::move(each), wanted, one_per_layout, best);
      if (!reports) continue;
      if (!best.empty()) progress_.best_step = best.front().candidate.result.step;
      if (request_.progress) progress_.open = count_open(plans, next);
      report_simulated();
      report_best();
    }
  }

  bool is_beaten(const EvaluatedPlan& plan, std::vector<Simulated>& best) const {
    const auto known = find_layout(best, plan);
    return known != best.end() && plan.score_bound > known->candidate.score;
  }

  // Counts the plans from `next` on, sorted by their bounds, that may replace one of the best.
  std::int64_t count_open(const std::vector<EvaluatedPlan>& plans, std::size_t next) {
    const auto first = plans.begin() + static_cast<std::ptrdiff_t>(next);
    auto last = plans.end();
    if (std::ssize(best_) == request_.top)
      last = std::upper_bound(
          first, last, best_.back().candidate.score,
          [](double score, const EvaluatedPlan& plan) { return score < plan.score_bound; });
    if (!request_.one_per_layout) return last - first;
    return std::count_if(first, last,
                         [this](const EvaluatedPlan& plan) { return !is_beaten(plan, best_); });
  }

  void keep(Simulated simulated, std::size_t wanted, bool one_per_layout,
            std::vector<Simulated>& best) const {
    if (one_per_layout) {
      const auto known = find_layout(best, simulated.evaluated);
      if (known != best.end() && !simulated.better_than(*known)) return;
      if (known != best.end()) best.erase(known);
    }
    const auto place = std::find_if(best.begin(), best.end(), [&](const Simulated& other) {
      return simulated.better_than(other);
    });
    best.insert(place, std::move(simulated));
    if (best.size() > wanted) best.pop_back();
  }

  using Layout = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool>;

  Layout layout_of(const EvaluatedPlan& plan) const {
    const Plan& cut = cuts_[plan.cut];
    return {cut.tp, plan.pp, cut.cp, cut.ep, plan.sharded};
  }

  std::vector<Simulated>::iterator find_layout(std::vector<Simulated>& best,
                                               const EvaluatedPlan& plan) const {
    return std::find_if(best.begin(), best.end(), [&](const Simulated& known) {
      return layout_of(known.evaluated) == layout_of(plan);
    });
  }

  std::optional<PlanCandidate> find_best_validated() {
    if (best_.empty() || best_.front().candidate.validated) return std::nullopt;
    std::vector<EvaluatedPlan> plans;
    for (const EvaluatedPlan& plan : evaluation_.plans) {
      if (plan.validated) plans.push_back(plan);
    }
    std::vector<Simulated> best;
    simulate_best(plans, 1, false, best, false);
    return best.empty() ? std::nullopt : std::optional(std::move(best.front().candidate));
  }

  std::optional<PlanCandidate> find_best_beyond() {
    std::vector<EvaluatedPlan>& plans = evaluation_.beyond;
    if (!best_.empty()) {
      std::erase_if(plans, [&](const EvaluatedPlan& plan) {
        return plan.score_bound >= best_.front().candidate.score;
      });
    }
    sort_by_bound(plans);
    std::vector<Simulated> best;
    simulate_best(plans, 1, false, best, false);
    if (best.empty() || (!best_.empty() && !best.front().better_than(best_.front())))
      return std::nullopt;
    return std::move(best.front().candidate);
  }

  void count_variants() {
    constexpr double kAlike = 1.01;
    if (!request_.one_per_layout) return;
    for (Simulated& each : best_) {
      const Layout layout = layout_of(each.evaluated);
      each.candidate.variants = std::count_if(
          evaluation_.plans.begin(), evaluation_.plans.end(), [&](const EvaluatedPlan& plan) {
            return plan.analytic <= kAlike * each.evaluated.analytic && !plan.is(each.evaluated) &&
                   layout_of(plan) == layout;
          });
    }
  }

  void count_faster(SearchResult& result) const {
    if (!request_.compared_time) return;
    const double compared = request_.compared_time->value();
    result.faster_than_compared =
        std::count_if(evaluation_.plans.begin(), evaluation_.plans.end(),
                      [&](const EvaluatedPlan& plan) { return plan.analytic < compared; });
  }

  // Simulates each plan that has not been simulated yet. If the search is stopped meanwhile,
  // returns the simulations that have ended, and the first one.
  std::vector<Simulated> simulate(const std::vector<EvaluatedPlan>& plans) {
    std::vector<std::optional<PlanCandidate>> results(plans.size());
    const bool none_yet = simulated_.empty();
    tbb::parallel_for(std::size_t{0}, plans.size(), [&](std::size_t i) {
      const auto known = simulated_.find({plans[i].cut, plans[i].index});
      results[i] =
          known != simulated_.end()
              ? known->second
              : candidate_of(plans[i], none_yet && i == 0 ? std::stop_token() : request_.stop);
    });
    std::vector<Simulated> simulated;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (!results[i]) continue;
      simulated_.try_emplace({plans[i].cut, plans[i].index}, *results[i]);
      simulated.push_back({plans[i], *std::move(results[i])});
    }
    return simulated;
  }

  // Returns nothing once `stop` is requested.
  std::optional<PlanCandidate> candidate_of(const EvaluatedPlan& evaluated,
                                            const std::stop_token& stop) const {
    const Scenario scenario = scenario_of(request_, find_plan(request_, cuts_, evaluated));
    auto result = sim::simulate_step(scenario, stop);
    if (!result) return std::nullopt;
    PlanCandidate candidate = rated(scenario, *std::move(result), request_.objective);
    candidate.analytic = Seconds(evaluated.analytic);
    candidate.bound = Seconds(evaluated.bound);
    candidate.validated = evaluated.validated;
    return candidate;
  }

  // Finds the fastest plan of each layout by the closed form, fastest first. Expects the plans of
  // the evaluation in the order of the space.
  std::vector<EvaluatedPlan> fastest_layouts() const {
    if (request_.layouts == 0) return {};
    std::map<Layout, EvaluatedPlan> fastest;
    for (const EvaluatedPlan& plan : evaluation_.plans) {
      const auto [known, is_new] = fastest.try_emplace(layout_of(plan), plan);
      if (!is_new && plan.analytic < known->second.analytic) known->second = plan;
    }
    std::vector<EvaluatedPlan> layouts;
    for (const auto& [layout, plan] : fastest) layouts.push_back(plan);
    std::stable_sort(layouts.begin(), layouts.end(),
                     [](const auto& a, const auto& b) { return a.analytic < b.analytic; });
    layouts.resize(std::min(layouts.size(), static_cast<std::size_t>(request_.layouts)));
    return layouts;
  }

  // Ends early if the search is stopped.
  std::vector<PlanCandidate> simulate_all(const std::vector<EvaluatedPlan>& plans) {
    std::vector<PlanCandidate> candidates;
    for (std::size_t next = 0; next < plans.size() && !request_.stop.stop_requested();) {
      const std::size_t end = std::min(next + kBatch, plans.size());
      for (Simulated& each : simulate({plans.begin() + static_cast<std::ptrdiff_t>(next),
                                       plans.begin() + static_cast<std::ptrdiff_t>(end)}))
        candidates.push_back(std::move(each.candidate));
      report_simulated();
      next = end;
    }
    return candidates;
  }

  // Finds the fastest plan within each of several memory limits, which the members of the analytic
  // front give. Uses branch and bound as above for all limits together, in waves that keep all
  // threads busy.
  void simulate_front() {
    std::vector<EvaluatedPlan> plans = evaluation_.plans;
    std::sort(plans.begin(), plans.end(), [](const EvaluatedPlan& a, const EvaluatedPlan& b) {
      return a.bound != b.bound ? a.bound < b.bound : a.comes_before(b);
    });
    std::vector<Simulated> known = best_;
    const std::vector<std::size_t> front = analytic_front(plans);
    trade_offs_ = static_cast<std::int64_t>(front.size());
    std::vector<FrontMember> members = front_members(plans, front);
    while (!request_.stop.stop_requested()) {
      const std::vector<EvaluatedPlan> wave = next_wave(plans, known, members);
      if (wave.empty()) break;
      for (Simulated& each : simulate(wave)) known.push_back(std::move(each));
      report_simulated();
    }
    if (request_.stop.stop_requested()) return;
    std::vector<TradeOff> points;
    points.reserve(known.size());
    for (const Simulated& each : known)
      points.push_back({each.candidate.result.step.value(), each.evaluated.memory});
    for (const std::size_t index : pareto_front(points)) {
      // Other simulated plans belong to the front too, if no remaining plan can beat them.
      FrontMember member{points[index].second};
      if (next_of(member, plans, known) == nullptr) front_.push_back(known[index].candidate);
    }
  }

  static const Simulated* fastest_within(double memory, const std::vector<Simulated>& known) {
    const Simulated* fastest = nullptr;
    for (const Simulated& each : known) {
      if (each.evaluated.memory > memory) continue;
      const bool faster =
          fastest == nullptr || each.candidate.result.step < fastest->candidate.result.step;
      if (faster) fastest = &each;
    }
    return fastest;
  }

  struct FrontMember {
    // The memory that a plan may need.
    double memory;
    // The next plan to consider, in the order of their bounds.
    std::size_t next = 0;
  };

  // Collects plans that may be the fastest of a member: the next one of each member, then the one
  // after that, until there are enough.
  static std::vector<EvaluatedPlan> next_wave(const std::vector<EvaluatedPlan>& plans,
                                              const std::vector<Simulated>& known,
                                              std::vector<FrontMember>& members) {
    std::vector<EvaluatedPlan> wave;
    bool grew = true;
    while (grew && wave.size() < kLargestFront) {
      grew = false;
      for (FrontMember& member : members) {
        const EvaluatedPlan* plan = next_of(member, plans, known);
        if (plan == nullptr) continue;
        grew = true;
        ++member.next;
        const bool waits = std::any_of(wave.begin(), wave.end(),
                                       [&](const EvaluatedPlan& other) { return other.is(*plan); });
        if (!waits) wave.push_back(*plan);
      }
    }
    return wave;
  }

  // Returns null if the best known plan of the member cannot be beaten.
  static const EvaluatedPlan* next_of(FrontMember& member, const std::vector<EvaluatedPlan>& plans,
                                      const std::vector<Simulated>& known) {
    const Simulated* found = fastest_within(member.memory, known);
    const double fastest =
        found == nullptr ? infinite<Seconds>().value() : found->candidate.result.step.value();
    for (; member.next < plans.size() && plans[member.next].bound < fastest; ++member.next) {
      const EvaluatedPlan& plan = plans[member.next];
      if (plan.memory > member.memory) continue;
      const bool done = std::any_of(known.begin(), known.end(),
                                    [&](const Simulated& each) { return each.evaluated.is(plan); });
      if (!done) return &plan;
    }
    return nullptr;
  }

  static std::vector<std::size_t> analytic_front(const std::vector<EvaluatedPlan>& plans) {
    std::vector<TradeOff> points;
    points.reserve(plans.size());
    for (const EvaluatedPlan& plan : plans) points.push_back({plan.analytic, plan.memory});
    return pareto_front(points);
  }

  // Selects both ends of the analytic front and evenly spaced members between them.
  static std::vector<FrontMember> front_members(const std::vector<EvaluatedPlan>& plans,
                                                const std::vector<std::size_t>& front) {
    const std::size_t count = std::min(front.size(), kLargestFront);
    std::vector<FrontMember> members;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t place = count == 1 ? 0 : i * (front.size() - 1) / (count - 1);
      members.push_back({plans[front[place]].memory});
    }
    // The fastest plan may need more memory than the fastest of the analytic level.
    if (!members.empty()) members.front().memory = infinite<Bytes>().value();
    return members;
  }

  const PlanRequest& request_;
  std::vector<Plan> cuts_;
  Evaluation evaluation_;
  // Best first, at most `top`.
  std::vector<Simulated> best_;
  std::vector<PlanCandidate> front_;
  // The number of members of the analytic front.
  std::int64_t trade_offs_ = 0;
  // Simulated plans by cut and index, because the front and the layouts may need one again.
  std::map<std::pair<std::uint32_t, std::uint32_t>, PlanCandidate> simulated_;
  std::mutex progress_mutex_;
  SearchProgress progress_;
};

// By the analytic level.
Seconds time_of_compared(const PlanRequest& request) {
  if (request.cluster.pools.empty()) return closed_forms(request, *request.compared).analytic;
  return sim::estimate_step(scenario_of(request, *request.compared)).analytic;
}

}  // namespace

std::int64_t SearchCounts::rejected_total() const {
  std::int64_t sum = 0;
  for (const Rejection& rejection : rejected) sum += rejection.count;
  return sum;
}

SearchResult search(const PlanRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  check_request(request);
  PlanRequest complete = request;
  adapt_limits(complete);
  SearchResult result;
  // Without permission oneTBB refuses more threads than there are cores, with a warning.
  std::optional<tbb::global_control> allowed;
  if (request.threads > tbb::info::default_concurrency()) {
    allowed.emplace(tbb::global_control::max_allowed_parallelism,
                    static_cast<std::size_t>(request.threads));
  }
  tbb::task_arena arena(request.threads > 0 ? request.threads : tbb::task_arena::automatic);
  arena.execute([&] {
    if (complete.global_batch == 0) {
      if (!complete.layer_costs) complete.layer_costs = std::make_shared<LayerCostCache>();
      KneeBatch knee = throughput_knee(complete);
      complete.global_batch = knee.batch;
      if (knee.stopped) {
        result = std::move(*knee.stopped);
        return;
      }
    }
    if (complete.compared) complete.compared_time = time_of_compared(complete);
    result = complete.cluster.pools.empty() ? Search(complete).run() : search_pools(complete);
  });
  result.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

Scenario scenario_of(const PlanRequest& request, const Plan& plan) {
  Scenario scenario{request.model, request.cluster, request.stack, plan};
  if (pools_of(plan).size() == 1) {
    scenario.cluster = stage_cluster(request.cluster, plan, 0);
    scenario.plan.stage_pools.clear();
    scenario.plan.replica_pools.clear();
  }
  return scenario;
}

PlanCandidate rated(const Scenario& scenario, sim::StepResult result, Objective objective) {
  PlanCandidate candidate;
  candidate.plan = scenario.plan;
  candidate.result = std::move(result);
  const StepExpense expense = step_expense(scenario, candidate.result);
  candidate.dollars_per_step = expense.price;
  candidate.joules_per_step = expense.energy;
  candidate.score = score(objective, candidate.plan, candidate.result, expense);
  return candidate;
}

PlanCandidate candidate_of(const Scenario& scenario) {
  PlanCandidate candidate = rated(scenario, sim::simulate_step(scenario), Objective::Time);
  candidate.analytic = candidate.bound = candidate.result.step;
  return candidate;
}

}  // namespace shardwright::planner
