// The cheap evaluation of every plan of a search: rules, constraints, memory, bound and analytic
// time.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "core/spec/plan_check.hpp"
#include "planner/search.hpp"
#include "sim/step/stage_costs.hpp"

namespace shardwright::planner {

// A plan that fits, by its place in the space. It takes only 48 bytes, because a space may have a
// million of them.
struct EvaluatedPlan {
  // No simulation of the plan scores lower.
  double score_bound = 0.0;
  // In seconds.
  double bound = 0.0;
  double analytic = 0.0;
  // In bytes.
  double memory = 0.0;
  // Index into layer_cuts.
  std::uint32_t cut = 0;
  // Index into the plans of the cut, in the order of the space.
  std::uint32_t index = 0;
  // The degrees by which layouts differ within a cut.
  std::uint16_t pp = 1;
  bool sharded = false;
  bool validated = true;

  bool is(const EvaluatedPlan& other) const { return cut == other.cut && index == other.index; }
  bool comes_before(const EvaluatedPlan& other) const {
    return cut != other.cut ? cut < other.cut : index < other.index;
  }
};

// A plan that obeys all rules but does not fit into memory.
struct TightPlan {
  double memory = std::numeric_limits<double>::infinity();
  std::optional<Plan> plan;
};

// The result of evaluating the plans of one cut, or of all.
struct Evaluation {
  std::int64_t space = 0;
  // Numbers of plans by PlanRule.
  std::vector<std::int64_t> broken_rules;
  // Numbers of plans by constraint: fixed ones, then forbidden ones.
  std::vector<std::int64_t> broken_constraints;
  std::int64_t too_large = 0;
  // Plans that no published run covers, if only covered ones are asked for.
  std::int64_t not_validated = 0;
  std::vector<EvaluatedPlan> plans;
  // Too large, but within the margin of memory.
  std::vector<EvaluatedPlan> beyond;
  TightPlan tightest;
  // The numbers of replicas of the plans that break the rule on the batch.
  std::set<std::int64_t> undivided;

  // The number of plans that break a rule.
  std::int64_t broken(PlanRule rule) const;
  void add(const Evaluation& other);
};

// The numbers of plans, as a search reports them.
SearchCounts counts_of(const PlanRequest& request, const Evaluation& evaluation,
                       std::int64_t simulated);

// The memory that the request allows, with the margin and without it.
Bytes whole_memory(const PlanRequest& request);
Bytes available_memory(const PlanRequest& request);

// The model's states spread over all accelerators. No plan of the space needs less.
Bytes least_memory(const PlanRequest& request);

SpaceRequest space_of(const PlanRequest& request);

// The stack whose capabilities restrict the plans; null where a plan is given, of which a measured
// run may have been another than the profile knows.
const StackSpec* restricting_stack(const PlanRequest& request);

// The evaluation of a plan that fits.
struct ClosedForms {
  Seconds bound, analytic;
  Bytes peak_memory;
};

// The same of any plan that obeys the rules, whether or not it is in the space or fits.
ClosedForms closed_forms(const PlanRequest& request, const Plan& plan);

// Evaluates the plans of cut number `cut` of `cuts`. If not even the states fit and the tightest
// plan is not asked for, plans are only counted.
Evaluation evaluate_cut(const PlanRequest& request, const std::vector<Plan>& cuts,
                        std::uint32_t cut, sim::ScheduleProfiles& profiles);

// Evaluates the whole space of `request` in parallel. `enough` is called after each cut; once it
// returns true, no further cut is begun.
Evaluation evaluate_space(const PlanRequest& request, const std::vector<Plan>& cuts,
                          const std::function<bool(const Evaluation& of_cut)>& enough);

// True if a plan of the space obeys the rules and constraints and fits.
bool has_feasible_plan(const PlanRequest& request);

// Finds the reason why no evaluated plan fits, and the changes that would help.
NoFeasiblePlan explain_infeasible(const PlanRequest& request, const Evaluation& evaluation);

Plan find_plan(const PlanRequest& request, const std::vector<Plan>& cuts,
               const EvaluatedPlan& evaluated);

}  // namespace shardwright::planner
