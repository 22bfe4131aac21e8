#include "sim/step/pool_links.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

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
  const bool pairs_stages = group == Group::Pipeline || group == Group::EmbeddingTie;
  if (!pairs_stages || placement.nodes > 1) return placement;
  return {.size = 2,
          .per_node = 1,
          .nodes = 2,
          .groups_per_node = std::min(domain_size(cluster), ranks_inside_pipeline(plan)),
          .span = 2};
}

Scenario with_equal_pools_as_one(Scenario scenario) {
  const std::vector<ClusterSpec> pools = pool_clusters(scenario.cluster, scenario.plan);
  for (std::string& name : scenario.plan.stage_pools) {
    const auto own = std::find_if(pools.begin(), pools.end(),
                                  [&](const ClusterSpec& pool) { return pool.name == name; });
    name = std::find_if(pools.begin(), own, [&](const ClusterSpec& pool) {
             return are_equal(pool, *own);
           })->name;
  }
  if (pools_of(scenario.plan).size() == 1) {
    scenario.plan.stage_pools.clear();
    scenario.cluster = pools.front();
  }
  return scenario;
}

}  // namespace shardwright::sim
