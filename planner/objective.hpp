// Objectives: the figures that plans are compared by.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/enum_names.hpp"
#include "core/base/units.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/scenario.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::planner {

enum class Objective : std::uint8_t {
  Time,            // tokens per second; the step time, if all plans have the same batch
  Cost,            // dollars per token
  Memory,          // the lowest peak
  TokensPerJoule,  // energy
};

constexpr auto enum_names(Objective) {
  return std::array{"time", "cost", "memory", "tokens-per-joule"};
}
using shardwright::name_of;

// Money and energy of one step on the whole machine.
struct StepExpense {
  // Zero if the profiles have no price.
  Dollars price;
  Joules energy;
};

// The part of the step in which the accelerators of all stages compute, on average, and of each
// stage.
Seconds computing_time(const sim::StepResult& result);
std::vector<Seconds> computing_times(const sim::StepResult& result);

// The cluster's price of an accelerator, or else the accelerator's; zero if neither has one.
DollarsPerSecond accelerator_price(const ClusterSpec& cluster);

// The mean over the plan's accelerators, which may lie on several pools.
DollarsPerSecond accelerator_price(const ClusterSpec& cluster, const Plan& plan);

// Computes the price and the energy of a step. An accelerator draws its idle power and, for the
// share of the step in which it computes, the rest of its design power; a node adds its overhead;
// the site multiplies by its PUE. The model is linear between two datasheet figures: it compares
// plans on one machine, but is no basis for billing.
StepExpense step_expense(const ClusterSpec& cluster, const Plan& plan, Seconds step,
                         Seconds computing);

// The same where stages lie on several pools: each stage by the figures of its own pool.
// `computing`: the part of the step in which the accelerators of each stage compute.
StepExpense step_expense(const ClusterSpec& cluster, const Plan& plan, Seconds step,
                         const std::vector<Seconds>& computing);

// The same of the scenario whose simulated step is `result`, each stage by the figures of its own
// pool.
StepExpense step_expense(const Scenario& scenario, const sim::StepResult& result);

// The value to be minimised. Time and money are per token, so that plans of different batches
// compare. Of two plans with equal scores, the one that comes first in the search space is better.
double score(Objective objective, const Plan& plan, const sim::StepResult& result,
             const StepExpense& expense);

// A point of two figures, both better when lower.
struct TradeOff {
  double first = 0.0;
  double second = 0.0;
};

// Returns the indices of the points that no other point equals or beats in both figures (of equal
// points, the first stays), in ascending order of `first`.
std::vector<std::size_t> pareto_front(const std::vector<TradeOff>& points);

}  // namespace shardwright::planner
