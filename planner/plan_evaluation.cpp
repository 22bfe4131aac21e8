#include "planner/plan_evaluation.hpp"

#include <algorithm>
#include <numeric>

#include "core/spec/plan_check.hpp"
#include "sim/step/analytic.hpp"
#include "sim/step/bound.hpp"
#include "sim/step/layer_costs.hpp"

namespace shardwright::planner {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

// Index of the first constraint that the plan breaks: fixed ones, then forbidden ones.
std::size_t first_broken(const Constraints& constraints, const Plan& plan) {
  for (std::size_t i = 0; i < constraints.fixed.size(); ++i) {
    if (!constraints.fixed[i].holds(plan)) return i;
  }
  for (std::size_t i = 0; i < constraints.forbidden.size(); ++i) {
    if (constraints.forbidden[i].holds(plan)) return constraints.fixed.size() + i;
  }
  return kNone;
}

// The part of the step in which the accelerators of all stages compute, on average: no simulation
// finds less.
Seconds computing(const sim::StageCosts& costs) {
  double sum = 0.0;
  for (const sim::StageCost& stage : costs.stages) sum += stage.compute;
  return Seconds(sum / static_cast<double>(costs.stages.size()));
}

double bound_of_score(const PlanRequest& request, const Plan& plan, const sim::StageCosts& costs,
                      Seconds bound) {
  sim::StepResult result;
  result.step = bound;
  result.stages.resize(1);
  result.stages[0].memory.peak = costs.memory;
  const StepExpense expense = step_expense(request.cluster, plan, bound, computing(costs));
  constexpr double kRounding = 1.0 - 1e-9;  // sums in another order than the simulation's
  return score(request.objective, plan, result, expense) * kRounding;
}

class CutEvaluation {
 public:
  CutEvaluation(const PlanRequest& request, const Plan& cut, std::uint32_t number,
                sim::ScheduleProfiles& profiles)
      : request_(request),
        cut_(cut),
        number_(number),
        available_(available_memory(request)),
        coster_(request.model, request.cluster, request.stack, profiles) {
    result_.broken_rules.assign(all_plan_rules().size(), 0);
    result_.broken_constraints.assign(
        request.constraints.fixed.size() + request.constraints.forbidden.size(), 0);
  }

  Evaluation run() {
    for_each_plan(space_of(request_), cut_, [this](const Plan& plan) { look_at(plan); });
    return std::move(result_);
  }

 private:
  void look_at(const Plan& plan) {
    const auto index = static_cast<std::uint32_t>(result_.space++);
    if (const auto rule =
            first_broken_rule(request_.model, request_.cluster, plan, request_.gpus)) {
      ++result_.broken_rules[static_cast<std::size_t>(*rule)];
      return;
    }
    const std::size_t constraint = first_broken(request_.constraints, plan);
    if (constraint != kNone) {
      ++result_.broken_constraints[constraint];
      return;
    }
    if (!layers_) {
      Plan cut = cut_;
      cut.dp = request_.gpus / (cut.tp * cut.cp);
      layers_ = sim::layer_costs(request_.model, cut, request_.cluster, request_.stack);
    }
    const Bytes memory = coster_.memory(*layers_, plan);
    if (memory > available_) {
      ++result_.too_large;
      if (memory.value() < result_.tightest.memory) result_.tightest = {memory.value(), plan};
      return;
    }
    const sim::StageCosts& costs = coster_.times(*layers_, plan);
    const Seconds bound = sim::bound_step(costs, plan);
    result_.plans.push_back({bound_of_score(request_, plan, costs, bound), bound.value(),
                             sim::analytic_step(costs, plan, bound).value(), costs.memory.value(),
                             number_, index});
  }

  const PlanRequest& request_;
  const Plan& cut_;
  std::uint32_t number_;
  Bytes available_;
  sim::StageCoster coster_;
  std::optional<sim::LayerCosts> layers_;
  Evaluation result_;
};

void add_counts(std::vector<std::int64_t>& sum, const std::vector<std::int64_t>& more) {
  sum.resize(std::max(sum.size(), more.size()));
  for (std::size_t i = 0; i < more.size(); ++i) sum[i] += more[i];
}

}  // namespace

void Evaluation::add(const Evaluation& other) {
  space += other.space;
  too_large += other.too_large;
  add_counts(broken_rules, other.broken_rules);
  add_counts(broken_constraints, other.broken_constraints);
  plans.insert(plans.end(), other.plans.begin(), other.plans.end());
  if (other.tightest.memory < tightest.memory) tightest = other.tightest;
}

Bytes available_memory(const PlanRequest& request) {
  const Bytes device = request.cluster.accelerator.memory;
  return request.max_memory > Bytes() ? std::min(request.max_memory, device) : device;
}

SpaceRequest space_of(const PlanRequest& request) {
  return {request.model,        request.cluster, request.stack,     request.gpus,
          request.global_batch, request.seq_len, request.precision, request.limits};
}

Evaluation evaluate_cut(const PlanRequest& request, const std::vector<Plan>& cuts,
                        std::uint32_t cut, sim::ScheduleProfiles& profiles) {
  return CutEvaluation(request, cuts[cut], cut, profiles).run();
}

Plan find_plan(const PlanRequest& request, const std::vector<Plan>& cuts,
               const EvaluatedPlan& evaluated) {
  Plan found;
  std::uint32_t index = 0;
  for_each_plan(space_of(request), cuts[evaluated.cut], [&](const Plan& plan) {
    if (index++ == evaluated.index) found = plan;
  });
  return found;
}

}  // namespace shardwright::planner
