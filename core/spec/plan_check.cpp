#include "core/spec/plan_check.hpp"

#include <utility>

#include "core/spec/plan_rules.hpp"

namespace shardwright {

const char* name_of(PlanRule rule) {
  return plan_rules()[static_cast<std::size_t>(rule)].name;
}

std::vector<PlanRule> all_plan_rules() {
  std::vector<PlanRule> rules;
  for (const RuleDefinition& definition : plan_rules()) rules.push_back(definition.rule);
  return rules;
}

std::optional<PlanRule> first_broken_rule(const ModelSpec& model, const ClusterSpec& cluster,
                                          const Plan& plan, std::int64_t accelerators) {
  const PlanSubject subject{model, &cluster, plan, accelerators};
  for (const RuleDefinition& definition : plan_rules()) {
    if (!definition.holds(subject)) return definition.rule;
  }
  return std::nullopt;
}

std::vector<BrokenRule> broken_rules(const ModelSpec& model, const ClusterSpec* cluster,
                                     const Plan& plan, std::int64_t accelerators,
                                     const std::string& pointer) {
  const PlanSubject subject{model, cluster, plan, accelerators};
  std::vector<BrokenRule> broken;
  for (const RuleDefinition& definition : plan_rules()) {
    if (definition.holds(subject)) continue;
    Problem problem = definition.describe(subject);
    problem.where = pointer + problem.where;
    broken.push_back({definition.rule, std::move(problem)});
    if (definition.rule == PlanRule::Range) break;
  }
  return broken;
}

std::vector<Problem> check_plan(const ModelSpec& model, const Plan& plan, std::int64_t accelerators,
                                const std::string& pointer) {
  std::vector<Problem> problems;
  for (BrokenRule& broken : broken_rules(model, nullptr, plan, accelerators, pointer)) {
    problems.push_back(std::move(broken.problem));
  }
  return problems;
}

}  // namespace shardwright
