// The cheap look at every plan of a search: rules, constraints, memory, bound and analytic time.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/spec/plan_check.hpp"
#include "planner/search.hpp"
#include "sim/step/stage_costs.hpp"

namespace shardwright::planner {

// A plan that fits, by its place in the space. 40 bytes: a space may have a million of them.
struct EvaluatedPlan {
  double score_bound = 0.0;  // no simulation of the plan scores lower
  double bound = 0.0;        // seconds
  double analytic = 0.0;     // seconds
  double memory = 0.0;       // bytes
  std::uint32_t cut = 0;     // of layer_cuts
  std::uint32_t index = 0;   // of the plans of the cut, in the order of the space

  bool is(const EvaluatedPlan& other) const { return cut == other.cut && index == other.index; }
  bool comes_before(const EvaluatedPlan& other) const {
    return cut != other.cut ? cut < other.cut : index < other.index;
  }
};

// A plan that obeys all rules but does not fit.
struct TightPlan {
  double memory = std::numeric_limits<double>::infinity();
  std::optional<Plan> plan;
};

// What a search finds among the plans of one cut, or of all.
struct Evaluation {
  std::int64_t space = 0;
  std::vector<std::int64_t> broken_rules;        // by PlanRule
  std::vector<std::int64_t> broken_constraints;  // fixed ones, then forbidden ones
  std::int64_t too_large = 0;
  std::vector<EvaluatedPlan> plans;
  TightPlan tightest;
  std::set<std::int64_t> undivided;  // replicas of the plans that fall to the rule on the batch

  // Plans that fall to a rule.
  std::int64_t broken(PlanRule rule) const;
  void add(const Evaluation& other);
};

Bytes available_memory(const PlanRequest& request);

// The model's states alone, spread over all accelerators: no plan of the space needs less.
Bytes least_memory(const PlanRequest& request);

SpaceRequest space_of(const PlanRequest& request);

// Where not even the states fit and nobody asks for the tightest plan, plans are only counted.
// The space of `request`, cut number `cut` of `cuts`.
Evaluation evaluate_cut(const PlanRequest& request, const std::vector<Plan>& cuts,
                        std::uint32_t cut, sim::ScheduleProfiles& profiles);

// The whole space of `request`, in parallel. Cuts that have not begun when `enough`, called after
// each, says so are left out.
Evaluation evaluate_space(const PlanRequest& request, const std::vector<Plan>& cuts,
                          const std::function<bool(const Evaluation& of_cut)>& enough);

// True if a plan of the space obeys the rules and constraints and fits.
bool has_feasible_plan(const PlanRequest& request);

Plan find_plan(const PlanRequest& request, const std::vector<Plan>& cuts,
               const EvaluatedPlan& evaluated);

}  // namespace shardwright::planner
