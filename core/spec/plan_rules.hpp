// The table behind plan_check.hpp. To add a rule: give it a PlanRule, write whether it holds and
// what to say where it does not, and add it to the table.
#pragma once

#include <cstdint>
#include <span>

#include "core/spec/plan_check.hpp"

namespace shardwright {

// The inputs of the rules.
struct PlanSubject {
  const ModelSpec& model;
  // May be null.
  const ClusterSpec* cluster;
  const Plan& plan;
  // The number that the plan has to use; 0: any number.
  std::int64_t accelerators;
  // May be null.
  const StackSpec* stack;
};

struct RuleDefinition {
  PlanRule rule;
  const char* name;
  // Called by the search: no strings, no allocation.
  bool (*holds)(const PlanSubject& subject);
  // Words a broken rule. `where` is relative to the plan.
  Problem (*describe)(const PlanSubject& subject);
};

// Each rule at the index of its enumerator.
std::span<const RuleDefinition> plan_rules();

// Spares the division in the most frequent case.
inline bool divides(std::int64_t divisor, std::int64_t number) {
  return divisor == 1 || number % divisor == 0;
}

inline bool within(std::int64_t value, std::int64_t least, std::int64_t most) {
  return value >= least && value <= most;
}

// True if some layer of the model has a dense feed-forward block.
bool has_dense_layers(const ModelSpec& model);

// The rules of memory_rules.cpp.
bool recompute_modules_hold(const PlanSubject& s);
Problem recompute_modules_problem(const PlanSubject& s);
bool recompute_layers_hold(const PlanSubject& s);
Problem recompute_layers_problem(const PlanSubject& s);
bool stage_recompute_holds(const PlanSubject& s);
Problem stage_recompute_problem(const PlanSubject& s);
bool recompute_pattern_holds(const PlanSubject& s);
Problem recompute_pattern_problem(const PlanSubject& s);
bool activation_offload_holds(const PlanSubject& s);
Problem activation_offload_problem(const PlanSubject& s);
bool optimizer_states_hold(const PlanSubject& s);
Problem optimizer_states_problem(const PlanSubject& s);
bool optimizer_offload_holds(const PlanSubject& s);
Problem optimizer_offload_problem(const PlanSubject& s);

// The rules of schedule_rules.cpp.
bool global_batch_holds(const PlanSubject& s);
bool step_size_holds(const PlanSubject& s);
bool virtual_stages_hold(const PlanSubject& s);
Problem virtual_stages_problem(const PlanSubject& s);
bool schedule_shape_holds(const PlanSubject& s);
Problem schedule_shape_problem(const PlanSubject& s);
bool layers_hold(const PlanSubject& s);
Problem layers_problem(const PlanSubject& s);
bool stage_layers_hold(const PlanSubject& s);
Problem stage_layers_problem(const PlanSubject& s);

// The rules of pool_rules.cpp.
bool stage_pools_hold(const PlanSubject& s);
Problem stage_pools_problem(const PlanSubject& s);
bool replica_pools_hold(const PlanSubject& s);
Problem replica_pools_problem(const PlanSubject& s);

// The rule of replica_rules.cpp.
bool replicas_hold(const PlanSubject& s);
Problem replicas_problem(const PlanSubject& s);

// The rule of adapters.cpp.
bool lora_holds(const PlanSubject& s);
Problem lora_problem(const PlanSubject& s);

// The rule of stack_rules.cpp.
bool stack_holds(const PlanSubject& s);
Problem stack_problem(const PlanSubject& s);

}  // namespace shardwright
