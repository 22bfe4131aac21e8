#include "sim/step/pool_links.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/program/group_lattice.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/rank_nesting.hpp"

namespace shardwright::sim {
namespace {

// True if it does not matter which of the pools a stage lies on.
bool are_equal(ClusterSpec a, const ClusterSpec& b) {
  a.name = b.name;
  a.nodes = b.nodes;
  a.price = b.price;
  return a == b && seen_from_outside(b, b.between_pools) == b;
}

}  // namespace

ClusterSpec seen_from_outside(ClusterSpec pool, const PoolNetwork& between) {
  NicSpec& nic = pool.node.nic;
  const BytesPerSecond own = nic.bandwidth * (nic.efficiency * static_cast<double>(nic.per_node));
  if (between.bandwidth > BytesPerSecond() && between.bandwidth < own)
    nic.bandwidth = nic.bandwidth * (between.bandwidth / own);
  pool.fabric.base_latency = std::max(pool.fabric.base_latency, between.latency);
  pool.exchange_curves.clear();
  return pool;
}

GroupPlacement place_between_pools(Group group, const Plan& plan, const ClusterSpec& cluster) {
  const GroupPlacement placement = place(group, plan, cluster);
  if (placement.nodes > 1) return placement;
  if (joins_pools_of_replicas(group, plan)) {
    const std::int64_t half = (placement.size + 1) / 2, groups = plan.world_size() / placement.size;
    return {
        .size = placement.size,
        .per_node = half,
        .nodes = 2,
        .groups_per_node = std::max<std::int64_t>(1, std::min(domain_size(cluster) / half, groups)),
        .span = 2};
  }
  if (group != Group::Pipeline && group != Group::EmbeddingTie) return placement;
  return {.size = 2,
          .per_node = 1,
          .nodes = 2,
          .groups_per_node = std::min(domain_size(cluster), ranks_inside_pipeline(plan)),
          .span = 2};
}

namespace {

// Replicas of neighbouring parts that run the same on the same pool are one part.
std::vector<PoolReplicas> joined_parts(const std::vector<PoolReplicas>& parts) {
  std::vector<PoolReplicas> joined;
  for (const PoolReplicas& part : parts) {
    const bool joins = !joined.empty() && joined.back().pool == part.pool &&
                       joined.back().stage_pools == part.stage_pools &&
                       joined.back().microbatches == part.microbatches &&
                       joined.back().experts == part.experts;
    if (joins) {
      joined.back().replicas += part.replicas;
    } else {
      joined.push_back(part);
    }
  }
  return joined;
}

}  // namespace

Scenario with_equal_pools_as_one(Scenario scenario) {
  Plan& plan = scenario.plan;
  const std::vector<ClusterSpec> pools = pool_clusters(scenario.cluster, plan);
  const auto first_equal = [&](const std::string& name) {
    const auto own = std::find_if(pools.begin(), pools.end(),
                                  [&](const ClusterSpec& pool) { return pool.name == name; });
    return std::find_if(pools.begin(), own,
                        [&](const ClusterSpec& pool) { return are_equal(pool, *own); })
        ->name;
  };
  for (std::string& name : plan.stage_pools) name = first_equal(name);
  for (PoolReplicas& part : plan.replica_pools) {
    if (part.stage_pools.empty()) part.stage_pools = {part.pool};
    for (std::string& name : part.stage_pools) name = first_equal(name);
    const auto first = part.stage_pools.begin();
    const bool split = std::count(first, part.stage_pools.end(), *first) !=
                       static_cast<std::ptrdiff_t>(part.stage_pools.size());
    part.pool = split ? "" : *first;
    if (!split) part.stage_pools.clear();
  }
  plan.replica_pools = joined_parts(plan.replica_pools);
  if (plan.replica_pools.size() == 1) {
    plan.stage_pools = plan.replica_pools.front().stage_pools;
    if (!plan.stage_pools.empty()) plan.replica_pools.clear();
  }
  if (pools_of(plan).size() == 1 && plan.replica_pools.size() < 2) {
    plan.stage_pools.clear();
    plan.replica_pools.clear();
    scenario.cluster = pools.front();
  }
  return scenario;
}

}  // namespace shardwright::sim
