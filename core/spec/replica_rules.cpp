// The rule of how replicas agree: local steps and compression.
#include <fmt/format.h>

#include "core/spec/plan_rules.hpp"
#include "core/spec/rank_nesting.hpp"

namespace shardwright {
namespace {

// Replicas that agree by local steps: data-parallel ranks, or with ZeRO groups of ranks that share
// the states.
std::int64_t whole_replicas(const Plan& plan) {
  const std::int64_t ranks = plan.dp * plan.cp;
  if (plan.zero_stage == 0) return plan.dp;
  return plan.shard_group == 0 ? 1 : ranks / plan.shard_group;
}

enum class Gap : std::uint8_t {
  None,
  Range,
  Replicas,
  ContextParallel,
  Experts,
  States,
  Offload,
  Sharding
};

bool in_range(const ReplicaAgreement& replicas) {
  return within(replicas.inner_steps, 1, kMaxInnerSteps) &&
         within(replicas.powersgd_rank, 1, kMaxLoraRank) && replicas.topk_ratio > 0.0 &&
         replicas.topk_ratio <= 1.0;
}

// The ranks that share a sequence, or tokens through experts, must belong to one replica.
Gap gap_of_local_steps(const PlanSubject& s) {
  const Plan& plan = s.plan;
  if (whole_replicas(plan) < 2) return Gap::Replicas;
  const std::int64_t together = plan.zero_stage == 0 ? 1 : plan.shard_group;
  if (together % plan.cp != 0) return Gap::ContextParallel;
  if (s.model.moe && expert_replicas(plan) != plan.dp * plan.cp) return Gap::Experts;
  if (is_pure(plan.optimizer_states)) return Gap::States;
  return plan.offloads_optimizer() ? Gap::Offload : Gap::None;
}

Gap gap_of(const PlanSubject& s) {
  const ReplicaAgreement& replicas = s.plan.replicas;
  if (replicas == ReplicaAgreement()) return Gap::None;
  if (!in_range(replicas)) return Gap::Range;
  if (replicas.local()) return gap_of_local_steps(s);
  if (s.plan.dp * s.plan.cp < 2) return Gap::Replicas;
  // ZeRO scatters sums over the ranks, which the compressed forms do not have one by one.
  if (s.plan.zero_stage != 0) return Gap::Sharding;
  return is_pure(s.plan.optimizer_states) ? Gap::States : Gap::None;
}

}  // namespace

bool replicas_hold(const PlanSubject& s) {
  return gap_of(s) == Gap::None;
}

Problem replicas_problem(const PlanSubject& s) {
  const Plan& plan = s.plan;
  const ReplicaAgreement& replicas = plan.replicas;
  const char* where = replicas.local() ? "/data_parallel/sync" : "/data_parallel/compression";
  const std::string found =
      replicas.local() ? name_of(replicas.sync) : name_of(replicas.compression);
  const auto with = [&](const std::string& what) { return fmt::format("{} with {}", found, what); };
  switch (gap_of(s)) {
    case Gap::None:
      break;
    case Gap::Range:
      return {"/data_parallel",
              fmt::format("inner_steps {}, topk_ratio {}, powersgd_rank {}", replicas.inner_steps,
                          replicas.topk_ratio, replicas.powersgd_rank),
              fmt::format("1 to {} inner steps, a share above 0 and up to 1, a rank of 1 to {}",
                          kMaxInnerSteps, kMaxLoraRank)};
    case Gap::Replicas:
      return {
          where, with("one replica"),
          "dp above 1, and with ZeRO a shard_group of fewer ranks than dp x cp: local steps are "
          "made between shard groups"};
    case Gap::ContextParallel:
      return {where, with(fmt::format("cp {}", plan.cp)),
              "cp 1, or ZeRO with a shard_group that is a multiple of cp: the ranks that share a "
              "sequence add up their gradients in each step"};
    case Gap::Experts:
      return {where, with(fmt::format("ep {} and expert_tp {}", plan.ep, plan.expert_tp)),
              "ep 1 and expert_tp as tp: experts of several ranks serve several replicas"};
    case Gap::States:
      return {where, with(fmt::format("{} optimizer states", name_of(plan.optimizer_states))),
              "weights or gradients in fp32, whose small changes are exchanged"};
    case Gap::Offload:
      return {where, with(fmt::format("the optimizer on {}", name_of(plan.offload_optimizer))),
              "an optimizer on the device"};
    case Gap::Sharding:
      return {where, with(fmt::format("ZeRO stage {}", plan.zero_stage)),
              "zero_stage 0: ZeRO scatters its sums, which are not compressed"};
  }
  return {};
}

}  // namespace shardwright
