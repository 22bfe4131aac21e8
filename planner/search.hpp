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
#include "core/spec/plan_check.hpp"
#include "core/spec/scenario.hpp"
#include "planner/constraints.hpp"
#include "planner/objective.hpp"
#include "planner/remedy.hpp"
#include "planner/search_space.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::planner {

class LayerCostCache;

struct SearchProgress {
  // The share of the layer cuts that were evaluated.
  double share = 0.0;
  // Numbers of plans so far.
  std::int64_t checked = 0, simulated = 0;
  std::optional<Seconds> best_step;
  // The number of accelerators that the search plans for.
  std::int64_t gpus = 0;
  // The number of plans that may still replace one of the best ones, by the bounds of their scores.
  // None before the first simulation, and for plans on several pools.
  std::optional<std::int64_t> open;
};

struct PlanCandidate {
  Plan plan;
  // Event simulation.
  sim::StepResult result;
  // The step time by the closed form, and its lower bound.
  Seconds analytic;
  Seconds bound;
  Dollars dollars_per_step;
  Joules joules_per_step;
  // The value of the objective; lower is better.
  double score = 0.0;
  // Published runs cover the plan; true if the request does not ask.
  bool validated = true;
  // The number of other plans of its layout that take within 1 % of its time by the closed form;
  // only if the request asks for one plan per layout.
  std::int64_t variants = 0;

  double tokens() const {
    return static_cast<double>(plan.global_batch) * static_cast<double>(plan.seq_len);
  }
  double dollars_per_token() const { return dollars_per_step.value() / tokens(); }
};

struct PlanRequest {
  ModelSpec model;
  ClusterSpec cluster;
  StackSpec stack;
  std::int64_t gpus = 1;
  // In sequences; 0: the throughput knee (batch_knee.hpp).
  std::int64_t global_batch = 0;
  // Limits the knee; 0: 16 Mi tokens.
  std::int64_t max_global_batch = 0;
  std::int64_t seq_len = 2048;
  Precision precision = Precision::Bf16;
  // Low-rank fine-tuning; without it all parameters are trained.
  std::optional<Lora> lora;
  Objective objective = Objective::Time;
  Constraints constraints;
  // Per accelerator; zero: all memory of the accelerator.
  Bytes max_memory;
  // The share of the accelerator's memory that a plan may use, on several pools of each one's.
  double max_memory_ratio = 1.0;
  // The share of it that the predicted peak of a plan may fill: below 1 keeps a margin.
  double memory_share = 1.0;
  // True to find the best plan that needs the margin, too.
  bool look_beyond_margin = false;
  SearchLimits limits;
  std::int64_t top = 5;
  // The plans are the best ones of as many layouts. Plans of one layout have the same tp, pp, cp,
  // ep and kind of data parallelism (ZeRO-3 or not).
  bool one_per_layout = false;
  // True if published runs cover the plan; null: all plans count as covered. Called from several
  // threads.
  std::function<bool(const Plan&)> validated;
  // On a cluster of several pools, returns `validated` for plans on one of them alone. No published
  // run covers plans on several.
  std::function<std::function<bool(const Plan&)>(const ClusterSpec& pool)> validated_on;
  // Search only plans that are validated.
  bool validated_only = false;
  // Count the plans that are faster than this one.
  std::optional<Plan> compared;
  // The time of `compared` by the analytic level, which search() fills in.
  std::optional<Seconds> compared_time;
  // True to compute the Pareto front.
  bool front = true;
  // The number of layouts whose fastest plan is found, too.
  std::int64_t layouts = 0;
  // If no plan fits, look for changes that would help.
  bool advice = true;
  // True to place stages, and with `places_replicas` whole replicas, on the pools of the cluster;
  // without it clusters of several pools are refused.
  bool takes_pools = false;
  bool places_replicas = true;
  // 0: one per core.
  int threads = 0;
  // Shared by searches with the same model, cluster and stack; may be null.
  std::shared_ptr<LayerCostCache> layer_costs;
  std::stop_token stop;
  // Called from one thread at a time.
  std::function<void(const SearchProgress&)> progress;
  // Called likewise after simulations, with the best plans so far, best first, at most `top`.
  std::function<void(const std::vector<PlanCandidate>&)> found;
};

// The number of plans that a rule, a constraint or the memory rejects.
struct Rejection {
  // A rule of plan_check.hpp ("kv_heads"), "memory", "validated ground", or a constraint ("fix
  // tp=8").
  std::string rule;
  std::int64_t count = 0;
};

struct SearchCounts {
  // All plans: evaluated + rejected.
  std::int64_t space = 0;
  // Feasible plans, for which a bound and an analytic step time were computed.
  std::int64_t evaluated = 0;
  // Evaluated plans that were simulated, each counted once.
  std::int64_t simulated = 0;
  // Counts above zero: rules in their order, constraints, validated ground, memory.
  std::vector<Rejection> rejected;

  std::int64_t rejected_total() const;
};

enum class ObstacleKind : std::uint8_t {
  Memory,          // plans obey the rules and constraints, but all are too large
  FusedAttention,  // only selective recomputation is allowed, which drops nothing here
  Impossible,      // no plan of the space has the value that a constraint fixes
  Rule,            // most plans break one rule
  Fixed,           // most plans have another value than the fixed one
  Forbidden,       // most plans have a forbidden value
};

// The main reason why no plan is feasible.
struct Obstacle {
  ObstacleKind kind = ObstacleKind::Memory;
  // The rule that most plans break, for `Rule`.
  PlanRule rule = PlanRule::Range;
  // The constraint that most plans do not meet, for `Impossible`, `Fixed` and `Forbidden`.
  Constraint constraint;
  // The values that plans of the space have instead, ascending, for `Impossible`.
  std::vector<std::int64_t> possible;
  // The number of plans that the obstacle excludes, and of all plans of the space.
  std::int64_t plans = 0, space = 0;
};

// The reason why there is no plan, and the changes that would help.
struct NoFeasiblePlan {
  Obstacle obstacle;
  // On a cluster of several pools the one that this is of: the one with the most memory.
  std::string pool;
  // The plan with the smallest memory shortfall; none if no plan obeys the rules and constraints.
  std::optional<Plan> nearest;
  // Memory per accelerator: that of `nearest`, the limit, and the difference.
  Bytes shortfall, needed, available;
  // Each element makes a plan fit; the changes in one belong together.
  std::vector<std::vector<Remedy>> closes_it;
};

// The best plan of one of several pools alone.
struct PoolAlone {
  std::string pool;
  // All accelerators of the pool, or as many of them as the request allows.
  std::int64_t gpus = 0;
  // None if no plan of the pool fits.
  std::optional<PlanCandidate> best;
};

// What a search looked at of the plans whose stages or replicas lie on several pools.
struct PlacementSearch {
  std::int64_t placements = 0;
  // Every placement, and of each placement every split of the layers. What is not complete is the
  // part that docs/models/search.md says.
  bool all_placements = false, all_splits = false;
  // Placements of replicas; true if these are all, each with every way to share the batch.
  std::int64_t replica_placements = 0;
  bool all_shares = false;
  // Plans that place both, or whose groups of experts span replicas on several pools; true if these
  // are all, each with every number of layers, microbatches and experts.
  std::int64_t joint_plans = 0;
  bool all_joint = false;
  // The best of the plans that were simulated.
  std::optional<PlanCandidate> best;
};

struct SearchResult {
  SearchCounts counts;
  double wall_s = 0.0;
  // True if the search was stopped; the plans are then the best so far.
  bool partial = false;
  // Best first, at most `top`.
  std::vector<PlanCandidate> plans;
  // The Pareto front of step time and memory, fastest first: no plan of the space beats a member in
  // both. A long front is thinned out.
  std::vector<PlanCandidate> front;
  // The approximate number of members of the whole front, by the closed form.
  std::int64_t trade_offs = 0;
  // The best plan that is validated, if that is not the first of `plans`.
  std::optional<PlanCandidate> best_validated;
  // The best plan that needs the margin of memory, if it is better than the first of `plans`.
  std::optional<PlanCandidate> best_beyond;
  // The number of feasible plans that are faster than the compared one by the closed form.
  std::optional<std::int64_t> faster_than_compared;
  // The fastest plans of the layouts by the closed form, fastest first, at most `layouts`. They
  // show the space far from its best plan.
  std::vector<PlanCandidate> layouts;
  // On a cluster of several pools.
  std::vector<PoolAlone> pools;
  // None where only validated plans are searched.
  std::optional<PlacementSearch> placed;
  std::optional<NoFeasiblePlan> infeasible;
};

// On a cluster of several pools `gpus` is the most that plans may use, and a plan of one pool uses
// those of that pool alone.
//
// Throws InputError for a request that no plan can answer because of its own numbers (more GPUs
// than the cluster has, a batch of less than one sequence …). `infeasible` is set if plans were
// evaluated and none fits.
SearchResult search(const PlanRequest& request);

// The scenario of a found plan, for plan files. If all of its ranks lie on one of several pools,
// it is a scenario of that pool alone.
Scenario scenario_of(const PlanRequest& request, const Plan& plan);

// The candidate of a plan that was not searched for: simulated, its score the step time, its closed
// forms the simulated step.
PlanCandidate candidate_of(const Scenario& scenario);

// Adds the price, the energy and the score of a step.
PlanCandidate rated(const Scenario& scenario, sim::StepResult result, Objective objective);

}  // namespace shardwright::planner
