#include "planner/layer_cost_cache.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/spec/plan_json.hpp"
#include "sim/cost/placement.hpp"

namespace shardwright::planner {
namespace {

// `block` is the number of accelerators of a domain that the job takes.
std::string key_of(const Plan& cut, const ClusterSpec& cluster, std::int64_t block) {
  // The slowest of more devices is slower.
  const std::int64_t devices = cluster.accelerator.speed_variation > 0.0 ? cut.world_size() : 0;
  Plan key = cut;
  key.global_batch = 1;
  const bool whole_domains = cut.world_size() % block == 0;
  if (whole_domains && cut.pp == 1 && cut.rank_order.back() == Axis::Pipeline) key.dp = 1;
  return fmt::format("{}, {}, {}", to_json(key).dump(), block, devices);
}

}  // namespace

std::shared_ptr<const sim::LayerCosts> LayerCostCache::of(const ModelSpec& model,
                                                          const ClusterSpec& cluster,
                                                          const StackSpec& stack, const Plan& cut) {
  const std::string key = key_of(cut, cluster, sim::domain_block(cluster, cut.world_size()));
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
  }
  auto costs =
      std::make_shared<const sim::LayerCosts>(sim::layer_costs(model, cut, cluster, stack));
  const std::lock_guard lock(mutex_);
  return known_.emplace(key, std::move(costs)).first->second;
}

}  // namespace shardwright::planner
