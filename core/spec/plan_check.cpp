#include "core/spec/plan_check.hpp"

#include <algorithm>
#include <utility>

#include "core/spec/adapters.hpp"
#include "core/spec/plan_rules.hpp"

namespace shardwright {
namespace {

AdapterCount trained_parameters(const ModelSpec& model, const Plan& plan) {
  if (plan.lora) return count_adapters(model, *plan.lora);
  const ParameterCount count = count_parameters(model);
  if (trained_mtp_layers(model, plan) == 0) return {count.total, count.routed};
  return {count.total + count.mtp, count.routed + count.routed_mtp};
}

}  // namespace

std::int64_t trained_mtp_layers(const ModelSpec& model, const Plan& plan) {
  return plan.multi_token_prediction && !plan.lora ? model.mtp_layers : 0;
}

bool shares_embedding(const ModelSpec& model, const Plan& plan) {
  return model.tied_embeddings || trained_mtp_layers(model, plan) > 0;
}

// One copy for each replica, or group of replicas that share one. What tensor-parallel ranks hold
// alike (norms) counts once.
Bytes offloaded_states(const ModelSpec& model, const Plan& plan) {
  const auto [all, routed] = trained_parameters(model, plan);
  const std::int64_t replicas = plan.dp * plan.cp;
  const std::int64_t of_experts =
      std::max<std::int64_t>(1, replicas * plan.tp / (plan.ep * plan.expert_tp));
  // Products of parameters and copies overflow 64 bits in the largest plans.
  const auto copies = [&](std::int64_t holders) {
    if (plan.zero_stage == 0) return static_cast<double>(holders);
    if (plan.shard_group == 0) return 1.0;
    const std::int64_t groups = holders / std::min(holders, plan.shard_group);
    return static_cast<double>(groups);
  };
  return Bytes(kHostStateBytes * (static_cast<double>(all - routed) * copies(replicas) +
                                  static_cast<double>(routed) * copies(of_experts)));
}

bool world_size_in_range(const Plan& plan) {
  // Four degrees of kMaxDegree overflow 64 bits; doubles are exact up to kMaxWorld.
  return static_cast<double>(plan.dp) * static_cast<double>(plan.tp) *
             static_cast<double>(plan.pp) * static_cast<double>(plan.cp) <=
         static_cast<double>(kMaxWorld);
}

const char* name_of(PlanRule rule) {
  return plan_rules()[static_cast<std::size_t>(rule)].name;
}

std::vector<PlanRule> all_plan_rules() {
  std::vector<PlanRule> rules;
  for (const RuleDefinition& definition : plan_rules()) rules.push_back(definition.rule);
  return rules;
}

std::optional<PlanRule> first_broken_rule(const ModelSpec& model, const ClusterSpec& cluster,
                                          const Plan& plan, std::int64_t accelerators,
                                          const StackSpec* stack) {
  const PlanSubject subject{model, &cluster, plan, accelerators, stack};
  for (const RuleDefinition& definition : plan_rules()) {
    if (!definition.holds(subject)) return definition.rule;
  }
  return std::nullopt;
}

std::vector<BrokenRule> broken_rules(const ModelSpec& model, const ClusterSpec* cluster,
                                     const Plan& plan, std::int64_t accelerators,
                                     const std::string& pointer) {
  const PlanSubject subject{model, cluster, plan, accelerators, nullptr};
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

OverlapSwitches usual_overlap(const StackSpec& stack, const ModelSpec& model) {
  OverlapSwitches overlap;
  overlap.tensor_parallel = stack.overlap.tensor_parallel;
  overlap.expert_parallel = stack.overlap.expert_parallel && has_shared_experts(model);
  return overlap;
}

}  // namespace shardwright
