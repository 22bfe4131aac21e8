#include "core/spec/plan_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/spec/plan_rules.hpp"

namespace shardwright {

namespace {

template <class T>
bool runs(const std::vector<T>& listed, const T& wanted) {
  return listed.empty() || std::ranges::find(listed, wanted) != listed.end();
}

}  // namespace

// One copy for each replica, or group of replicas that share one. What tensor-parallel ranks hold
// alike (norms) counts once.
Bytes offloaded_states(const ModelSpec& model, const Plan& plan) {
  const ParameterCount count = count_parameters(model);
  std::int64_t all = count.total, routed = count.routed;
  if (plan.multi_token_prediction) {
    all += count.mtp;
    routed += count.routed_mtp;
  }
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

OverlapSwitches usual_overlap(const StackSpec& stack, const ModelSpec& model) {
  OverlapSwitches overlap;
  overlap.tensor_parallel = stack.overlap.tensor_parallel;
  overlap.expert_parallel = stack.overlap.expert_parallel && has_shared_experts(model);
  return overlap;
}

std::vector<std::string> unsupported_by(const StackSpec& stack, const Plan& plan) {
  std::vector<std::string> sentences;
  if (plan.pp > 1 && !runs(stack.schedules, plan.schedule)) {
    std::vector<std::string> names;
    for (const ScheduleKind schedule : stack.schedules) names.emplace_back(name_of(schedule));
    sentences.push_back(fmt::format("{} does not run the schedule {} (it runs {})", stack.name,
                                    name_of(plan.schedule), fmt::join(names, ", ")));
  }
  if (!runs(stack.zero_stages, plan.zero_stage)) {
    sentences.push_back(fmt::format("{} does not run ZeRO stage {} (it runs {})", stack.name,
                                    plan.zero_stage, fmt::join(stack.zero_stages, ", ")));
  }
  const bool gathers = plan.context_parallel == ContextParallelKind::AllGather;
  if (plan.cp > 1 && !stack.fusion.flash_attention && !gathers) {
    sentences.push_back(fmt::format(
        "{} does not fuse attention: context parallelism gathers keys and values, whatever "
        "the plan says ({})",
        stack.name, name_of(plan.context_parallel)));
  }
  if (!runs(stack.recompute, plan.recompute)) {
    std::vector<std::string> names;
    for (const RecomputePolicy policy : stack.recompute) names.emplace_back(name_of(policy));
    sentences.push_back(fmt::format("{} does not run the recomputation {} (it runs {})", stack.name,
                                    name_of(plan.recompute), fmt::join(names, ", ")));
  }
  return sentences;
}

}  // namespace shardwright
