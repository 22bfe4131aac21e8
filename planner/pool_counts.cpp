#include "planner/pool_counts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/nearest_name.hpp"
#include "core/spec/pools.hpp"

namespace shardwright::planner {
namespace {

PoolSpec as_further_pool(const ClusterSpec& alone) {
  return {.name = alone.name,
          .accelerator = alone.accelerator,
          .node = alone.node,
          .fabric = alone.fabric,
          .nodes = alone.nodes,
          .price = alone.price};
}

// The first of the clusters with the others as further pools.
ClusterSpec joined(const std::vector<ClusterSpec>& pools, const PoolNetwork& between) {
  ClusterSpec cluster = pools.front();
  for (std::size_t i = 1; i < pools.size(); ++i) cluster.pools.push_back(as_further_pool(pools[i]));
  cluster.between_pools = cluster.pools.empty() ? PoolNetwork() : between;
  return cluster;
}

std::vector<ClusterSpec> pools_alone(const ClusterSpec& cluster) {
  std::vector<ClusterSpec> pools;
  for (const std::string& name : names_of_pools(cluster))
    pools.push_back(*pool_cluster(cluster, name));
  return pools;
}

void require_pool(const char* field, const ClusterSpec& cluster, const std::string& pool,
                  ProblemList& problems) {
  const std::vector<std::string> names = names_of_pools(cluster);
  if (std::ranges::find(names, pool) == names.end())
    problems.add(field, fmt::format("\"{}\"", pool), one_of(pool, names));
}

std::int64_t size_of(const ClusterSpec& pool) {
  return pool.nodes * pool.accelerators_per_node();
}

// The pool of the next node of a fleet whose pools, which have so many nodes, grow in proportion.
std::size_t next_to_grow(const std::vector<ClusterSpec>& pools,
                         const std::vector<std::int64_t>& nodes) {
  const auto share = [&](std::size_t i) {
    return (static_cast<double>(nodes[i]) + 0.5) / static_cast<double>(pools[i].nodes);
  };
  std::size_t next = 0;
  for (std::size_t i = 1; i < pools.size(); ++i)
    if (share(i) < share(next)) next = i;
  return next;
}

// The numbers of nodes of a fleet whose pools grow in proportion.
std::vector<std::int64_t> in_proportion(const std::vector<ClusterSpec>& pools, std::int64_t gpus) {
  std::vector<std::int64_t> nodes(pools.size());
  for (std::int64_t left = gpus;;) {
    const std::size_t next = next_to_grow(pools, nodes);
    left -= pools[next].accelerators_per_node();
    if (left < 0) return nodes;
    ++nodes[next];
  }
}

void check_growth(const ClusterSpec& cluster, const std::string& pool) {
  ProblemList problems("growing pools");
  if (!pool.empty()) require_pool("grow", cluster, pool, problems);
  for (const ClusterSpec& each : pools_alone(cluster)) {
    if (each.nodes == 0 && each.name != pool)
      problems.add("cluster", fmt::format("no number of nodes in the pool {}", each.name),
                   "nodes of each pool, from which the fleet grows");
  }
  problems.throw_if_any();
}

void require_gpus(std::int64_t gpus, bool enough, const std::string& expected) {
  if (!enough) throw InputError("growing pools", {{"gpus", fmt::format("{}", gpus), expected}});
}

// The accelerators of the fleet without those of `pool`, none of which grow.
std::int64_t beside(const std::vector<ClusterSpec>& pools, const std::string& pool) {
  return std::accumulate(pools.begin(), pools.end(), std::int64_t{0},
                         [&](std::int64_t sum, const ClusterSpec& each) {
                           return each.name == pool ? sum : sum + size_of(each);
                         });
}

// The pools with as many nodes; those without any are left out.
ClusterSpec with_nodes(const std::vector<ClusterSpec>& pools,
                       const std::vector<std::int64_t>& nodes, const PoolNetwork& between) {
  std::vector<ClusterSpec> kept;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    if (nodes[i] == 0) continue;
    kept.push_back(pools[i]);
    kept.back().nodes = nodes[i];
  }
  return joined(kept, between);
}

}  // namespace

ClusterSpec grown_to(const ClusterSpec& cluster, const std::string& pool, std::int64_t gpus) {
  check_growth(cluster, pool);
  const std::vector<ClusterSpec> pools = pools_alone(cluster);
  if (pool.empty()) {
    const std::vector<std::int64_t> nodes = in_proportion(pools, gpus);
    require_gpus(gpus, *std::ranges::max_element(nodes) > 0,
                 fmt::format("at least the {} of the first node",
                             pools[next_to_grow(pools, nodes)].accelerators_per_node()));
    return with_nodes(pools, nodes, cluster.between_pools);
  }
  const std::int64_t kept = beside(pools, pool);
  require_gpus(gpus, gpus >= kept,
               fmt::format("at least the {} of the pools that stay as they are", kept));
  std::vector<std::int64_t> nodes;
  for (const ClusterSpec& each : pools)
    nodes.push_back(each.name == pool ? (gpus - kept) / each.accelerators_per_node() : each.nodes);
  return with_nodes(pools, nodes, cluster.between_pools);
}

std::int64_t accelerators_of(const ClusterSpec& cluster) {
  const std::vector<ClusterSpec> pools = pools_alone(cluster);
  return beside(pools, "");
}

ClusterSpec left_of(const ClusterSpec& cluster, const std::map<std::string, std::int64_t>& left) {
  ProblemList problems("ranks");
  for (const auto& [name, count] : left) {
    require_pool("pool", cluster, name, problems);
    const auto pool = pool_cluster(cluster, name);
    const auto most = pool ? pool->most_accelerators() : std::nullopt;
    if (most && count > *most)
      problems.add(name, fmt::format("{}", count),
                   fmt::format("at most the {} accelerators of the pool", *most));
  }
  problems.throw_if_any();
  std::vector<ClusterSpec> pools;
  for (ClusterSpec& pool : pools_alone(cluster)) {
    const auto count = left.find(pool.name);
    if (count == left.end() || count->second == 0) continue;
    const std::int64_t node = pool.accelerators_per_node();
    pool.nodes = std::max<std::int64_t>(1, count->second / node);
    if (count->second < node) {
      pool.node.accelerators = count->second;
      pool.node.scale_up.domain = std::min(pool.node.scale_up.domain, count->second);
      pool.node.nic.per_node = std::min(pool.node.nic.per_node, count->second);
    }
    pools.push_back(std::move(pool));
  }
  if (pools.empty()) throw InputError("ranks", {{"of all pools", "0", "at least 1"}});
  return joined(pools, cluster.between_pools);
}

}  // namespace shardwright::planner
