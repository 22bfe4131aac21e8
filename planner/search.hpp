// Finds the best plans of the whole search space.
//
// Every plan of the space is checked against the rules and the constraints, its memory computed,
// and its score bounded from below. Plans are then simulated by the event level in the order of
// their bounds until no bound is below the scores already found (branch and bound), so the answer
// is that of simulating every plan. It does not depend on the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/spec/scenario.hpp"
#include "planner/constraints.hpp"
#include "planner/objective.hpp"
#include "planner/remedy.hpp"
#include "planner/search_space.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::planner {

class LayerCostCache;

struct SearchProgress {
  double share = 0.0;          // of the ways to cut layers that were looked at
  std::int64_t checked = 0;    // plans, so far
  std::int64_t simulated = 0;  // so far
  std::optional<Seconds> best_step;
};

struct PlanCandidate {
  Plan plan;
  sim::StepResult result;  // event simulation
  Seconds analytic;        // the step by the closed form
  Seconds bound;           // its lower bound
  Dollars dollars_per_step;
  Joules joules_per_step;
  double score = 0.0;  // of the objective; lower is better

  double tokens() const {
    return static_cast<double>(plan.global_batch) * static_cast<double>(plan.seq_len);
  }
  double dollars_per_token() const { return dollars_per_step.value() / tokens(); }
  double tokens_per_joule() const { return tokens() / joules_per_step.value(); }
};

struct PlanRequest {
  ModelSpec model;
  ClusterSpec cluster;
  StackSpec stack;
  std::int64_t gpus = 1;
  std::int64_t global_batch = 0;      // sequences; 0: the throughput knee (see batch_knee.hpp)
  std::int64_t max_global_batch = 0;  // for the knee; 0: 16 Mi tokens
  std::int64_t seq_len = 2048;
  Precision precision = Precision::Bf16;
  Objective objective = Objective::Time;
  Constraints constraints;
  Bytes max_memory;  // per accelerator; zero: what the accelerator has
  SearchLimits limits;
  std::int64_t top = 5;
  bool front = true;                            // also the Pareto front
  std::int64_t layouts = 0;                     // also the fastest plan of so many layouts
  bool advice = true;                           // where no plan fits, look for what would help
  int threads = 0;                              // 0: as many as there are cores
  std::shared_ptr<LayerCostCache> layer_costs;  // of searches with the same model, cluster and
                                                // stack; null: none
  std::stop_token stop;
  std::function<void(const SearchProgress&)> progress;  // called from one thread at a time
  // Called likewise after plans were simulated: the best so far, best first, at most `top`.
  std::function<void(const std::vector<PlanCandidate>&)> found;
};

// Plans of the space that fell to a rule, a constraint or memory.
struct Rejection {
  std::string rule;  // of plan_check.hpp ("kv_heads"), "memory", or a constraint ("fix tp=8")
  std::int64_t count = 0;
};

struct SearchCounts {
  std::int64_t space = 0;           // = evaluated + all rejected
  std::int64_t evaluated = 0;       // feasible: given a bound and an analytic step time
  std::int64_t simulated = 0;       // of these, each counted once
  std::vector<Rejection> rejected;  // those above zero: rules in their order, constraints, memory

  std::int64_t rejected_total() const;
};

// Why there is no plan, and what would be needed.
struct NoFeasiblePlan {
  std::string reason;           // one sentence
  std::optional<Plan> nearest;  // the plan with the smallest memory shortfall
  Bytes shortfall;              // of `nearest`, per accelerator
  Bytes needed, available;      // of `nearest`, per accelerator
  // Each makes a plan fit; what stands in one is changed together.
  std::vector<std::vector<Remedy>> closes_it;
};

struct SearchResult {
  SearchCounts counts;
  double wall_s = 0.0;
  bool partial = false;              // stopped before its end: best so far
  std::vector<PlanCandidate> plans;  // best first, at most `top`
  // Step time against memory, fastest first: no plan of the space beats a member in both. Of a long
  // front a part.
  std::vector<PlanCandidate> front;
  std::int64_t trade_offs = 0;  // about how many members the whole front has, by the closed form
  // A layout is what has the same tp, pp, cp, ep and kind of data parallelism (ZeRO-3 or not). Of
  // each the fastest plan by the closed form, at most `layouts`, the fastest ones first: what the
  // space holds far from its best.
  std::vector<PlanCandidate> layouts;
  std::optional<NoFeasiblePlan> infeasible;
};

// Throws InputError for a request that no plan can answer because of its own numbers (gpus beyond
// the cluster, a batch of less than one sequence …). `infeasible` is set where plans were looked at
// and none fits.
SearchResult search(const PlanRequest& request);

// The scenario of a found plan, for plan files.
Scenario scenario_of(const PlanRequest& request, const Plan& plan);

// The candidate of a plan that was not searched for: simulated, its score the step time, its closed
// forms the simulated step.
PlanCandidate candidate_of(const Scenario& scenario);

}  // namespace shardwright::planner
