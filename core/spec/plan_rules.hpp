// The table behind plan_check.hpp. To add a rule: give it a PlanRule, write whether it holds and
// what to say where it does not, and add it to the table.
#pragma once

#include <cstdint>
#include <span>

#include "core/spec/plan_check.hpp"

namespace shardwright {

// What the rules look at.
struct PlanSubject {
  const ModelSpec& model;
  const ClusterSpec* cluster;  // may be null
  const Plan& plan;
  std::int64_t accelerators;  // that the plan has to use; 0: any number
};

struct RuleDefinition {
  PlanRule rule;
  const char* name;
  // Called by the search: no strings, no allocation.
  bool (*holds)(const PlanSubject& subject);
  // Only called where the rule does not hold. `where` is relative to the plan.
  Problem (*describe)(const PlanSubject& subject);
};

// Each rule at the index of its enumerator.
std::span<const RuleDefinition> plan_rules();

}  // namespace shardwright
