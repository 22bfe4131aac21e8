// The rule of how replicas agree: local steps, parameter servers and compression.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/quantity_text.hpp"
#include "core/spec/parameter_servers.hpp"
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
  Fragments,
  Sharding,
  ServerSharding,
  ServerCompression,
  ServerNodes,
  ServersOfNodes,
  ServerMemory,
  ServerMirrors
};

bool in_range(const ReplicaAgreement& replicas) {
  return within(replicas.inner_steps, 1, kMaxInnerSteps) &&
         within(replicas.powersgd_rank, 1, kMaxLoraRank) &&
         within(replicas.servers, 0, kMaxDegree) && within(replicas.staleness, 0, kMaxStaleness) &&
         replicas.topk_ratio > 0.0 && replicas.topk_ratio <= 1.0 &&
         within(replicas.fragments, 1, kMaxDegree) &&
         within(replicas.overlap_steps, 0, kMaxInnerSteps) && replicas.local_share >= 0.0 &&
         replicas.local_share <= 1.0;
}

// Exchanges of fragments follow each other, so that each has the network for itself.
bool fragments_fit(const ReplicaAgreement& replicas, std::int64_t layers) {
  const std::int64_t steps_each = std::max<std::int64_t>(1, replicas.overlap_steps);
  return replicas.fragments <= layers && replicas.fragments <= replicas.inner_steps / steps_each;
}

// The ranks that share a sequence, or tokens through experts, must belong to one replica.
Gap gap_of_local_steps(const PlanSubject& s) {
  const Plan& plan = s.plan;
  if (whole_replicas(plan) < 2) return Gap::Replicas;
  const std::int64_t together = plan.zero_stage == 0 ? 1 : plan.shard_group;
  if (together % plan.cp != 0) return Gap::ContextParallel;
  if (s.model.moe && expert_replicas(plan) != plan.dp * plan.cp) return Gap::Experts;
  if (is_pure(plan.optimizer_states)) return Gap::States;
  if (!fragments_fit(plan.replicas, s.model.layers)) return Gap::Fragments;
  return plan.offloads_optimizer() ? Gap::Offload : Gap::None;
}

// The bytes that one node of servers holds.
Bytes server_memory_needed(const PlanSubject& s) {
  return server_state_bytes(s.plan) *
         (static_cast<double>(count_parameters(s.model).total) /
          static_cast<double>(server_nodes(s.plan, *s.cluster).servers));
}

// Servers on nodes of their own need as many; those on the workers' nodes are spread evenly.
Gap gap_of_server_nodes(const PlanSubject& s) {
  if (s.cluster == nullptr) return Gap::None;
  const ServerNodes nodes = server_nodes(s.plan, *s.cluster);
  const auto most = s.cluster->most_accelerators();
  if (nodes.dedicated && most && nodes.all() > *most / nodes.accelerators) return Gap::ServerNodes;
  if (!divides(nodes.servers, nodes.processes)) return Gap::ServersOfNodes;
  const Bytes host = s.cluster->node.host.memory;
  return host > Bytes() && server_memory_needed(s) > host ? Gap::ServerMemory : Gap::None;
}

// Servers keep the states of the optimizer in fp32. A replica that pushes by itself is one rank's
// data.
Gap gap_of_servers(const PlanSubject& s) {
  const Plan& plan = s.plan;
  if (plan.zero_stage != 0) return Gap::ServerSharding;
  if (plan.dp * plan.cp < 2) return Gap::Replicas;
  if (plan.replicas.compression != ReplicaCompression::None) return Gap::ServerCompression;
  if (plan.replicas.stale() && plan.cp > 1) return Gap::ContextParallel;
  if (s.model.moe && expert_replicas(plan) != plan.dp * plan.cp) return Gap::Experts;
  if (is_narrow(plan.optimizer_states)) return Gap::States;
  if (plan.offloads_optimizer()) return Gap::Offload;
  if (plan.schedule == ScheduleKind::DualPipe && plan.pp > 1) return Gap::ServerMirrors;
  return gap_of_server_nodes(s);
}

Gap gap_of(const PlanSubject& s) {
  const ReplicaAgreement& replicas = s.plan.replicas;
  if (replicas == ReplicaAgreement()) return Gap::None;
  if (!in_range(replicas)) return Gap::Range;
  if (replicas.local()) return gap_of_local_steps(s);
  if (replicas.has_servers()) return gap_of_servers(s);
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
  const bool of_sync = replicas.sync != ReplicaSync::AllReduce;
  const char* where = of_sync ? "/data_parallel/sync" : "/data_parallel/compression";
  const std::string found = of_sync ? name_of(replicas.sync) : name_of(replicas.compression);
  const auto with = [&](const std::string& what) { return fmt::format("{} with {}", found, what); };
  switch (gap_of(s)) {
    case Gap::None:
      break;
    case Gap::Range:
      return {
          "/data_parallel",
          fmt::format("inner_steps {}, topk_ratio {}, powersgd_rank {}, servers {}, staleness {}, "
                      "fragments {}, overlap_steps {}, local_share {}",
                      replicas.inner_steps, replicas.topk_ratio, replicas.powersgd_rank,
                      replicas.servers, replicas.staleness, replicas.fragments,
                      replicas.overlap_steps, replicas.local_share),
          fmt::format("1 to {} inner steps, a topk_ratio above 0 and up to 1, a rank of 1 to {}, "
                      "up to {} servers and {} steps of staleness, 1 to {} fragments, up to {} "
                      "overlap_steps and a local_share from 0 to 1",
                      kMaxInnerSteps, kMaxLoraRank, kMaxDegree, kMaxStaleness, kMaxDegree,
                      kMaxInnerSteps)};
    case Gap::Replicas:
      if (replicas.has_servers()) return {where, with("one replica"), "dp x cp above 1"};
      return {
          where, with("one replica"),
          "dp above 1, and with ZeRO a shard_group of fewer ranks than dp x cp: local steps are "
          "made between shard groups"};
    case Gap::ContextParallel:
      if (replicas.has_servers())
        return {where,
                fmt::format("{} servers with cp {}", name_of(replicas.server_updates), plan.cp),
                "cp 1, or synchronous servers: the ranks that share a sequence push parts of one "
                "gradient"};
      return {where, with(fmt::format("cp {}", plan.cp)),
              "cp 1, or ZeRO with a shard_group that is a multiple of cp: the ranks that share a "
              "sequence add up their gradients in each step"};
    case Gap::Experts:
      return {where, with(fmt::format("ep {} and expert_tp {}", plan.ep, plan.expert_tp)),
              "ep 1 and expert_tp as tp: experts of several ranks serve several replicas"};
    case Gap::States:
      if (replicas.has_servers())
        return {where, with(fmt::format("{} optimizer states", name_of(plan.optimizer_states))),
                "of-stack or fp32: servers keep moments in fp32"};
      return {where, with(fmt::format("{} optimizer states", name_of(plan.optimizer_states))),
              "weights or gradients in fp32, whose small changes are exchanged"};
    case Gap::Offload:
      return {where, with(fmt::format("the optimizer on {}", name_of(plan.offload_optimizer))),
              replicas.has_servers() ? "no offload: servers keep the optimizer's states"
                                     : "an optimizer on the device"};
    case Gap::Fragments:
      return {"/data_parallel/fragments",
              fmt::format("{} fragments and {} overlap_steps in {} inner_steps", replicas.fragments,
                          replicas.overlap_steps, replicas.inner_steps),
              fmt::format("at most the {} layers of the model, and fragments x overlap_steps, or "
                          "fragments alone where no steps overlap, of at most inner_steps: their "
                          "exchanges follow each other",
                          s.model.layers)};
    case Gap::Sharding:
      return {where, with(fmt::format("ZeRO stage {}", plan.zero_stage)),
              "zero_stage 0: ZeRO scatters its sums, which are not compressed"};
    case Gap::ServerSharding:
      return {where, with(fmt::format("ZeRO stage {}", plan.zero_stage)),
              "zero_stage 0: servers hold the states, which ZeRO would split"};
    case Gap::ServerCompression:
      return {"/data_parallel/compression", with(name_of(replicas.compression)),
              "none: servers receive whole gradients"};
    case Gap::ServerNodes:
      return {"/data_parallel/servers",
              fmt::format("{} nodes of workers and {} of servers",
                          server_nodes(plan, *s.cluster).workers,
                          server_nodes(plan, *s.cluster).servers),
              "as many nodes as the cluster has, or colocated servers"};
    case Gap::ServersOfNodes:
      return {
          "/data_parallel/servers",
          fmt::format("{} on {} nodes", replicas.servers, server_nodes(plan, *s.cluster).servers),
          "at most one for each node of the workers, or a multiple of these nodes"};
    case Gap::ServerMirrors:
      return {where, with(name_of(plan.schedule)),
              "a schedule with one copy of each part: two stages would push and pull the same"};
    case Gap::ServerMemory:
      return {"/data_parallel/servers",
              fmt::format("{} GB of parameters and states on a node of servers",
                          format_gigabytes(server_memory_needed(s))),
              fmt::format("at most the {} GB of a host, so more nodes of servers",
                          format_gigabytes(s.cluster->node.host.memory))};
  }
  return {};
}

}  // namespace shardwright
