#include "core/spec/pools.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/error.hpp"

namespace shardwright {

std::vector<std::string> pools_of(const Plan& plan) {
  std::vector<std::string> pools;
  for (const std::string& pool : plan.stage_pools) {
    if (std::find(pools.begin(), pools.end(), pool) == pools.end()) pools.push_back(pool);
  }
  return pools;
}

std::int32_t pool_of_stage(const Plan& plan, std::size_t stage) {
  if (plan.stage_pools.empty()) return 0;
  const std::vector<std::string> pools = pools_of(plan);
  return static_cast<std::int32_t>(std::find(pools.begin(), pools.end(), plan.stage_pools[stage]) -
                                   pools.begin());
}

std::optional<ClusterSpec> pool_cluster(const ClusterSpec& cluster, const std::string& name) {
  const auto pool = std::find_if(cluster.pools.begin(), cluster.pools.end(),
                                 [&](const PoolSpec& each) { return each.name == name; });
  if (pool == cluster.pools.end() && name != cluster.name) return std::nullopt;
  ClusterSpec alone = cluster;
  alone.pools.clear();
  if (pool == cluster.pools.end()) return alone;
  alone.name = pool->name;
  alone.accelerator = pool->accelerator;
  alone.node = pool->node;
  alone.fabric = pool->fabric;
  alone.nodes = pool->nodes;
  alone.price = pool->price;
  alone.exchange_curves.clear();
  return alone;
}

namespace {

ClusterSpec known_pool(const ClusterSpec& cluster, const std::string& name) {
  std::optional<ClusterSpec> pool = pool_cluster(cluster, name);
  SHARDWRIGHT_CHECK(pool.has_value(), "a stage on a pool that the cluster does not have");
  return *std::move(pool);
}

}  // namespace

std::vector<ClusterSpec> pool_clusters(const ClusterSpec& cluster, const Plan& plan) {
  std::vector<ClusterSpec> clusters;
  for (const std::string& name : pools_of(plan)) clusters.push_back(known_pool(cluster, name));
  return clusters;
}

ClusterSpec stage_cluster(const ClusterSpec& cluster, const Plan& plan, std::int32_t stage) {
  if (plan.stage_pools.empty()) return cluster;
  return known_pool(cluster, plan.stage_pools[static_cast<std::size_t>(stage)]);
}

std::vector<std::string> names_of_pools(const ClusterSpec& cluster) {
  std::vector<std::string> names = {cluster.name};
  for (const PoolSpec& pool : cluster.pools) names.push_back(pool.name);
  return names;
}

std::int64_t ranks_per_domain(const NodeSpec& node) {
  return std::max<std::int64_t>({1, node.accelerators, node.scale_up.domain});
}

FlopPerSecond mean_peak(const ClusterSpec& cluster, const Plan& plan) {
  const auto peak_of = [&](const ClusterSpec& pool) {
    return pool.accelerator.matrix.of(plan.precision);
  };
  if (plan.stage_pools.empty()) return peak_of(cluster);
  const std::vector<ClusterSpec> pools = pool_clusters(cluster, plan);
  // Differences from the first one, so that the mean of equal peaks is exact.
  FlopPerSecond further;
  for (std::size_t stage = 0; stage < plan.stage_pools.size(); ++stage)
    further += peak_of(pools[static_cast<std::size_t>(pool_of_stage(plan, stage))]) -
               peak_of(pools.front());
  return peak_of(pools.front()) + further / static_cast<double>(plan.pp);
}

bool alike_links(const ClusterSpec& cluster, const Plan& plan) {
  const std::vector<ClusterSpec> pools = pool_clusters(cluster, plan);
  if (pools.size() > 1 && cluster.between_pools != PoolNetwork()) return false;
  return std::all_of(pools.begin(), pools.end(), [&](const ClusterSpec& pool) {
    return pool.node == cluster.node && pool.fabric == cluster.fabric;
  });
}

void refuse_pools(const Plan& plan, const std::string& source) {
  if (plan.stage_pools.empty()) return;
  throw InputError(source, {{"/plan/stage_pools",
                             fmt::format("stages on pools: {}", fmt::join(pools_of(plan), ", ")),
                             "no such key: the level bound, `shardwright import` and `calibrate` "
                             "support clusters of one pool only"}});
}

}  // namespace shardwright
