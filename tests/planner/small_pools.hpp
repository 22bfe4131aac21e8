// Small random planning problems on two pools, where every plan can be tried.
#pragma once

#include <algorithm>
#include <random>
#include <string>

#include "core/spec/pools.hpp"
#include "core/spec/profile_library.hpp"
#include "planner/placements.hpp"
#include "planner/plan_evaluation.hpp"
#include "planner/request_check.hpp"
#include "sim/step/simulate.hpp"
#include "tests/planner/random_request.hpp"

namespace shardwright::planner {

// A cluster of `nodes` nodes of `per_node` accelerators.
inline void shrink(ClusterSpec& cluster, std::int64_t nodes, std::int64_t per_node) {
  cluster.nodes = nodes;
  cluster.node.accelerators = per_node;
  cluster.node.scale_up.domain = per_node;
  cluster.node.nic.per_node = std::min(cluster.node.nic.per_node, per_node);
}

inline PoolSpec pool_of(const ClusterSpec& cluster, const std::string& name) {
  return {.name = name,
          .accelerator = cluster.accelerator,
          .node = cluster.node,
          .fabric = cluster.fabric,
          .nodes = cluster.nodes,
          .price = cluster.price};
}

// Adds a pool: like the first one, or of another shipped kind behind a network that may be slower.
inline void add_pool(std::mt19937& random, bool equal, ClusterSpec& cluster) {
  ClusterSpec second = cluster;
  if (!equal) {
    second = load_cluster(pick<std::string>(random, {"dgx-h100", "dgx-a100", "h100-pcie-server"}));
    shrink(second, 1, pick<std::int64_t>(random, {1, 2}));
    second.node.host.speed = pick<double>(random, {0.5, 1.0});
    cluster.between_pools.latency = Seconds(pick<double>(random, {0.0, 1e-5, 1e-3}));
    cluster.between_pools.bandwidth = BytesPerSecond(pick<double>(random, {0.0, 1e10}));
  }
  cluster.pools.push_back(pool_of(second, "second"));
}

// A job whose plans on several pools are some dozens, each split of the layers counted.
inline PlanRequest small_job(std::mt19937& random, bool equal) {
  PlanRequest request = random_request(random);
  request.model.layers = pick<std::int64_t>(random, {3, 4, 5, 6});
  shrink(request.cluster, pick<std::int64_t>(random, {1, 2}), pick<std::int64_t>(random, {1, 2}));
  request.stack = load_stack(pick<std::string>(random, {"megatron-core", "shardwright", "fsdp2"}));
  request.stack.capabilities.precisions.clear();
  add_pool(random, equal, request.cluster);
  request.gpus = pick<std::int64_t>(random, {2, 3, 4, 6, 8});
  std::int64_t sum = 0;
  for (const std::string& name : names_of_pools(request.cluster))
    sum += pool_size(request.cluster, name, 16);
  request.gpus = std::min(request.gpus, sum);
  request.global_batch = pick<std::int64_t>(random, {4, 8});
  request.takes_pools = true;
  request.top = 3;
  request.limits.schedules = {
      pick<ScheduleKind>(random, {ScheduleKind::OneFOneB, ScheduleKind::Interleaved,
                                  ScheduleKind::ZbH1, ScheduleKind::ZbV, ScheduleKind::GPipe})};
  request.limits.zero_stages = {pick<int>(random, {0, 1, 2, 3})};
  request.limits.recompute = {
      pick<RecomputePolicy>(random, {RecomputePolicy::None, RecomputePolicy::Full})};
  request.limits.context_parallel = {ContextParallelKind::AllGather};
  request.limits.max_micro_batch = pick<std::int64_t>(random, {1, 2});
  request.limits.partial_recompute = false;
  request.limits.rank_orders = {Plan().rank_order};
  if (request.model.moe) fix(request, {"expert_tp=1"});
  // Sometimes memory decides, on one of the pools.
  if (!equal && pick<int>(random, {0, 1, 2}) == 0)
    request.cluster.pools[0].accelerator.memory = gigabytes(pick<double>(random, {8.0, 14.0}));
  adapt_limits(request);
  return request;
}

inline bool fits(const PlanRequest& request, const Plan& plan) {
  const sim::StepResult step =
      sim::simulate_step({request.model, request.cluster, request.stack, plan});
  for (std::int32_t stage = 0; stage < count_stages(plan); ++stage) {
    PlanRequest own = request;
    own.cluster = stage_cluster(request.cluster, plan, stage);
    if (step.stages[static_cast<std::size_t>(stage)].memory.peak > available_memory(own))
      return false;
  }
  return true;
}

}  // namespace shardwright::planner
