#include "planner/search.hpp"

#include <fmt/format.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <mutex>

#include "core/base/error.hpp"
#include "core/spec/plan_check.hpp"
#include "planner/batch_knee.hpp"
#include "planner/infeasible.hpp"
#include "planner/pareto.hpp"
#include "planner/plan_evaluation.hpp"
#include "planner/request_check.hpp"
#include "sim/step/simulate.hpp"

namespace shardwright::planner {
namespace {

// Plans that are simulated at once. Fixed, so that the number of simulations does not depend on the
// number of threads.
constexpr std::size_t kBatch = 4;
// Members of the Pareto front that are simulated at most.
constexpr std::size_t kLargestFront = 16;

using Clock = std::chrono::steady_clock;

Seconds computing(const sim::StepResult& result) {
  Seconds sum;
  for (const sim::StageResult& stage : result.stages)
    sum += stage.time.compute() + stage.time.optimizer;
  return sum / static_cast<double>(result.stages.size());
}

class Search {
 public:
  explicit Search(const PlanRequest& request)
      : request_(request), cuts_(layer_cuts(space_of(request))) {}

  SearchResult run() {
    const auto start = Clock::now();
    evaluate();
    std::vector<EvaluatedPlan>& plans = evaluation_.plans;
    std::sort(plans.begin(), plans.end(), [](const EvaluatedPlan& a, const EvaluatedPlan& b) {
      return a.score_bound != b.score_bound ? a.score_bound < b.score_bound : a.comes_before(b);
    });
    simulate_best();
    simulate_front();
    SearchResult result;
    fill_counts(result.counts);
    result.partial = request_.stop.stop_requested();
    for (Simulated& each : best_) result.plans.push_back(std::move(each.candidate));
    result.front = std::move(front_);
    if (plans.empty() && !result.partial)
      result.infeasible = explain_infeasible(request_, evaluation_);
    result.wall_s = std::chrono::duration<double>(Clock::now() - start).count();
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
    std::vector<Evaluation> of_cut(cuts_.size());
    tbb::enumerable_thread_specific<sim::ScheduleProfiles> profiles;
    tbb::parallel_for(std::size_t{0}, cuts_.size(), [&](std::size_t cut) {
      if (request_.stop.stop_requested()) return;
      of_cut[cut] =
          evaluate_cut(request_, cuts_, static_cast<std::uint32_t>(cut), profiles.local());
      const std::lock_guard lock(progress_mutex_);
      progress_.checked += of_cut[cut].space;
      progress_.space = progress_.checked;
      report();
    });
    for (const Evaluation& each : of_cut) evaluation_.add(each);
  }

  void report() const {
    if (request_.progress) request_.progress(progress_);
  }

  // Branch and bound: once the worst of the best is below every bound that is left, nothing can
  // change any more.
  void simulate_best() {
    const auto wanted = static_cast<std::size_t>(request_.top);
    const std::vector<EvaluatedPlan>& plans = evaluation_.plans;
    // Even a search that was stopped while it evaluated has a best so far: that of its first batch.
    for (std::size_t next = 0;
         next < plans.size() && (next == 0 || !request_.stop.stop_requested());) {
      const bool full = best_.size() == wanted;
      if (full && plans[next].score_bound > best_.back().candidate.score) return;
      const std::size_t end = std::min(next + kBatch, plans.size());
      for (Simulated& each : simulate({plans.begin() + static_cast<std::ptrdiff_t>(next),
                                       plans.begin() + static_cast<std::ptrdiff_t>(end)}))
        keep(std::move(each), wanted);
      next = end;
      progress_.simulated = simulated_;
      if (!best_.empty()) progress_.best_step = best_.front().candidate.result.step;
      report();
    }
  }

  void keep(Simulated simulated, std::size_t wanted) {
    const auto place = std::find_if(best_.begin(), best_.end(), [&](const Simulated& other) {
      return simulated.better_than(other);
    });
    best_.insert(place, std::move(simulated));
    if (best_.size() > wanted) best_.pop_back();
  }

  std::vector<Simulated> simulate(const std::vector<EvaluatedPlan>& plans) {
    std::vector<Simulated> results(plans.size());
    tbb::parallel_for(std::size_t{0}, plans.size(), [&](std::size_t i) {
      results[i] = {plans[i], candidate_of(plans[i])};
    });
    simulated_ += static_cast<std::int64_t>(plans.size());
    return results;
  }

  PlanCandidate candidate_of(const EvaluatedPlan& evaluated) const {
    PlanCandidate candidate;
    candidate.plan = find_plan(request_, cuts_, evaluated);
    candidate.result = sim::simulate_step(scenario_of(request_, candidate.plan));
    candidate.analytic = Seconds(evaluated.analytic);
    candidate.bound = Seconds(evaluated.bound);
    const StepExpense expense = step_expense(request_.cluster, candidate.plan,
                                             candidate.result.step, computing(candidate.result));
    candidate.dollars_per_step = expense.price;
    candidate.joules_per_step = expense.energy;
    candidate.score = score(request_.objective, candidate.plan, candidate.result, expense);
    return candidate;
  }

  // The front by the analytic rung, its members simulated, and the best plans.
  void simulate_front() {
    if (request_.stop.stop_requested()) return;
    std::vector<TradeOff> points;
    for (const EvaluatedPlan& plan : evaluation_.plans)
      points.push_back({plan.analytic, plan.memory});
    std::vector<EvaluatedPlan> members;
    for (const std::size_t index : pareto_front(points))
      members.push_back(evaluation_.plans[index]);
    thin_out(members);
    std::vector<Simulated> simulated = simulate(members);
    // The analytic rung may have ranked the best plans below another one.
    simulated.insert(simulated.begin(), best_.begin(), best_.end());
    points.clear();
    for (const Simulated& each : simulated) {
      points.push_back(
          {each.candidate.result.step.value(), each.candidate.result.memory().peak.value()});
    }
    for (const std::size_t index : pareto_front(points))
      front_.push_back(std::move(simulated[index].candidate));
  }

  // Both ends and members between them, evenly.
  static void thin_out(std::vector<EvaluatedPlan>& members) {
    if (members.size() <= kLargestFront) return;
    std::vector<EvaluatedPlan> kept;
    for (std::size_t i = 0; i < kLargestFront; ++i)
      kept.push_back(members[i * (members.size() - 1) / (kLargestFront - 1)]);
    members = std::move(kept);
  }

  void fill_counts(SearchCounts& counts) const {
    counts.space = evaluation_.space;
    counts.evaluated = static_cast<std::int64_t>(evaluation_.plans.size());
    counts.simulated = simulated_;
    const auto add = [&](const std::string& rule, std::int64_t count) {
      if (count > 0) counts.rejected.push_back({rule, count});
    };
    for (std::size_t i = 0; i < evaluation_.broken_rules.size(); ++i)
      add(name_of(static_cast<PlanRule>(i)), evaluation_.broken_rules[i]);
    const std::vector<Constraint>& fixed = request_.constraints.fixed;
    for (std::size_t i = 0; i < evaluation_.broken_constraints.size(); ++i) {
      const std::string name =
          i < fixed.size()
              ? "fix " + to_string(fixed[i])
              : "forbid " + to_string(request_.constraints.forbidden[i - fixed.size()]);
      add(name, evaluation_.broken_constraints[i]);
    }
    add("memory", evaluation_.too_large);
  }

  const PlanRequest& request_;
  std::vector<Plan> cuts_;
  Evaluation evaluation_;
  std::vector<Simulated> best_;  // best first, at most `top`
  std::vector<PlanCandidate> front_;
  std::int64_t simulated_ = 0;
  std::mutex progress_mutex_;
  SearchProgress progress_;
};

}  // namespace

std::int64_t SearchCounts::rejected_total() const {
  std::int64_t sum = 0;
  for (const Rejection& rejection : rejected) sum += rejection.count;
  return sum;
}

SearchResult search(const PlanRequest& request) {
  check_request(request);
  PlanRequest complete = request;
  adapt_limits(complete);
  SearchResult result;
  tbb::task_arena arena(request.threads > 0 ? request.threads : tbb::task_arena::automatic);
  arena.execute([&] {
    if (complete.global_batch == 0) complete.global_batch = throughput_knee(complete);
    result = Search(complete).run();
  });
  return result;
}

Scenario scenario_of(const PlanRequest& request, const Plan& plan) {
  return {request.model, request.cluster, request.stack, plan};
}

}  // namespace shardwright::planner
