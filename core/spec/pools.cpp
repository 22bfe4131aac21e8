#include "core/spec/pools.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"

namespace shardwright {

std::size_t replica_parts(const Plan& plan) {
  return std::max<std::size_t>(1, plan.replica_pools.size());
}

std::size_t part_of_replica(const Plan& plan, std::int64_t replica) {
  std::size_t part = 0;
  while (part + 1 < replica_parts(plan) && replica >= first_replica(plan, part + 1)) ++part;
  return part;
}

std::int64_t first_replica(const Plan& plan, std::size_t part) {
  if (plan.replica_pools.empty()) return part == 0 ? 0 : plan.dp;
  std::int64_t replicas = 0;
  for (std::size_t i = 0; i < part; ++i) replicas += plan.replica_pools[i].replicas;
  return replicas;
}

Plan plan_of_part(const Plan& plan, std::size_t part) {
  Plan own = plan;
  if (plan.replica_pools.empty()) return own;
  const std::int64_t microbatches = plan.replica_pools[part].microbatches;
  for (PoolReplicas& each : own.replica_pools) each.microbatches = microbatches;
  own.global_batch = plan.dp * microbatches * plan.micro_batch;
  // The other numbers stay, since exchanges take as long as on the rank with the most experts.
  std::swap(own.replica_pools.front().experts, own.replica_pools[part].experts);
  return own;
}

bool numbers_experts(const Plan& plan) {
  return std::any_of(plan.replica_pools.begin(), plan.replica_pools.end(),
                     [](const PoolReplicas& part) { return part.experts > 0; });
}

std::int64_t experts_of_rank(const Plan& plan, std::int64_t all) {
  if (numbers_experts(plan)) return plan.replica_pools.front().experts;
  return std::max<std::int64_t>(1, all / plan.ep);
}

std::int64_t most_experts_of_rank(const Plan& plan, std::int64_t all) {
  std::int64_t most = experts_of_rank(plan, all);
  for (const PoolReplicas& part : plan.replica_pools) most = std::max(most, part.experts);
  return most;
}

std::vector<MovableParts> movable_parts(const Plan& plan) {
  std::vector<MovableParts> parts;
  // DualPipe, whose stages share their parts with others, lies on one pool.
  if (plan.schedule == ScheduleKind::DualPipe) return parts;
  if (plan.replicas == ReplicaAgreement() && plan.dp > 1 && plan.zero_stage <= 1)
    parts.push_back(MovableParts::Replicas);
  // The chunks of other schedules have no stage of their own.
  if (plan.pp > 1 && plan.vpp == 1) parts.push_back(MovableParts::Stages);
  return parts;
}

std::int64_t batch_of_pools(const Plan& plan) {
  double sequences = 0.0;
  for (const PoolReplicas& part : plan.replica_pools)
    sequences += static_cast<double>(plan.micro_batch) * static_cast<double>(part.replicas) *
                 static_cast<double>(part.microbatches);
  constexpr double kMost = 9e18;
  return static_cast<std::int64_t>(std::min(sequences, kMost));
}

std::int64_t count_stages(const Plan& plan) {
  return plan.pp * static_cast<std::int64_t>(replica_parts(plan));
}

std::int64_t ranks_of_stage(const Plan& plan, std::size_t stage) {
  const std::size_t part = stage / static_cast<std::size_t>(plan.pp);
  return plan.tp * plan.cp * (first_replica(plan, part + 1) - first_replica(plan, part));
}

std::vector<std::string> pools_of(const Plan& plan) {
  std::vector<std::string> pools;
  const auto add = [&](const std::string& pool) {
    if (std::find(pools.begin(), pools.end(), pool) == pools.end()) pools.push_back(pool);
  };
  for (const std::string& pool : plan.stage_pools) add(pool);
  for (const PoolReplicas& part : plan.replica_pools) {
    if (part.stage_pools.empty()) add(part.pool);
    for (const std::string& pool : part.stage_pools) add(pool);
  }
  return pools;
}

const std::string& pool_name_of_stage(const Plan& plan, std::size_t stage) {
  static const std::string none;
  if (!plan.stage_pools.empty()) return plan.stage_pools[stage];
  if (plan.replica_pools.empty()) return none;
  const auto stages = static_cast<std::size_t>(plan.pp);
  return plan.replica_pools[stage / stages].pool_of(stage % stages);
}

std::int32_t pool_of_stage(const Plan& plan, std::size_t stage) {
  if (!names_pools(plan)) return 0;
  const std::vector<std::string> pools = pools_of(plan);
  return static_cast<std::int32_t>(
      std::find(pools.begin(), pools.end(), pool_name_of_stage(plan, stage)) - pools.begin());
}

bool splits_replicas(const Plan& plan) {
  return std::any_of(
      plan.replica_pools.begin(), plan.replica_pools.end(), [](const PoolReplicas& part) {
        return std::any_of(part.stage_pools.begin(), part.stage_pools.end(),
                           [&](const auto& pool) { return pool != part.stage_pools.front(); });
      });
}

namespace {

// The pools of `count` stages, `stride` apart.
std::vector<std::int32_t> pools_of_stages(const Plan& plan, std::size_t first, std::size_t count,
                                          std::size_t stride) {
  std::vector<std::int32_t> pools;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t pool = pool_of_stage(plan, first + i * stride);
    if (std::find(pools.begin(), pools.end(), pool) == pools.end()) pools.push_back(pool);
  }
  return pools;
}

}  // namespace

std::vector<std::int32_t> pools_of_replica(const Plan& plan, std::size_t stage) {
  const auto stages = static_cast<std::size_t>(plan.pp);
  return pools_of_stages(plan, stage / stages * stages, stages, 1);
}

std::vector<std::int32_t> pools_of_replicas(const Plan& plan, std::size_t stage) {
  const auto stages = static_cast<std::size_t>(plan.pp);
  return pools_of_stages(plan, stage % stages, replica_parts(plan), stages);
}

std::int64_t ranks_on_pool(const Plan& plan, const std::string& pool) {
  std::int64_t ranks = 0;
  const auto stages = static_cast<std::size_t>(count_stages(plan));
  for (std::size_t stage = 0; stage < stages; ++stage)
    if (pool_name_of_stage(plan, stage) == pool) ranks += ranks_of_stage(plan, stage);
  return ranks;
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
  SHARDWRIGHT_CHECK(pool.has_value(), "a pool that the cluster does not have");
  return *std::move(pool);
}

}  // namespace

std::vector<ClusterSpec> pool_clusters(const ClusterSpec& cluster, const Plan& plan) {
  std::vector<ClusterSpec> clusters;
  for (const std::string& name : pools_of(plan)) clusters.push_back(known_pool(cluster, name));
  return clusters;
}

ClusterSpec stage_cluster(const ClusterSpec& cluster, const Plan& plan, std::int32_t stage) {
  if (!names_pools(plan)) return cluster;
  return known_pool(cluster, pool_name_of_stage(plan, static_cast<std::size_t>(stage)));
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
  if (!names_pools(plan)) return peak_of(cluster);
  const std::vector<ClusterSpec> pools = pool_clusters(cluster, plan);
  // Differences from the first one, so that the mean of equal peaks is exact.
  FlopPerSecond further;
  for (const ClusterSpec& pool : pools)
    further += (peak_of(pool) - peak_of(pools.front())) *
               static_cast<double>(ranks_on_pool(plan, pool.name));
  return peak_of(pools.front()) + further / static_cast<double>(plan.world_size());
}

bool alike_links(const ClusterSpec& cluster, const Plan& plan) {
  const std::vector<ClusterSpec> pools = pool_clusters(cluster, plan);
  if (pools.size() > 1 && cluster.between_pools != PoolNetwork()) return false;
  return std::all_of(pools.begin(), pools.end(), [&](const ClusterSpec& pool) {
    return pool.node == cluster.node && pool.fabric == cluster.fabric;
  });
}

void refuse_pools(const Plan& plan, const std::string& source) {
  if (!names_pools(plan)) return;
  const bool stages = !plan.stage_pools.empty();
  throw InputError(source, {{stages ? "/plan/stage_pools" : "/plan/replica_pools",
                             fmt::format("{} on pools: {}", stages ? "stages" : "replicas",
                                         fmt::join(pools_of(plan), ", ")),
                             "no such key: the level bound and `shardwright import` "
                             "support clusters of one pool only"}});
}

}  // namespace shardwright
