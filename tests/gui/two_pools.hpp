// A cluster of two small pools, and a request whose plans lie on one of them or on both.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/spec/cluster_json.hpp"
#include "core/spec/pools.hpp"
#include "tests/gui/small_scenario.hpp"

namespace shardwright::gui {

// The cluster as a pool of another one.
inline PoolSpec pool_like(const ClusterSpec& cluster, const std::string& name) {
  return {.name = name,
          .accelerator = cluster.accelerator,
          .node = cluster.node,
          .fabric = cluster.fabric,
          .nodes = cluster.nodes,
          .price = cluster.price};
}

// One node of four H100, and one of four A100 with half of their memory.
inline ClusterSpec two_pools() {
  ClusterSpec cluster = load_cluster("dgx-h100"), second = load_cluster("dgx-a100");
  for (ClusterSpec* pool : {&cluster, &second}) {
    pool->nodes = 1;
    pool->node.accelerators = pool->node.scale_up.domain = pool->node.nic.per_node = 4;
  }
  cluster.name = "h100";
  second.accelerator.memory = gigabytes(40.0);
  cluster.pools = {pool_like(second, "a100")};
  cluster.between_pools.latency = Seconds(1e-5);
  // As a file has it, where numbers without a source are given one.
  const nlohmann::json document = nlohmann::json::parse(to_json(cluster).dump());
  return read_cluster(document, cluster.name, PartLibrary{});
}

inline planner::PlanRequest request_on_two_pools() {
  planner::PlanRequest request = small_request();
  request.cluster = two_pools();
  request.global_batch = 16;
  return request;
}

inline PlanSetPointer set_on_two_pools() {
  static const PlanSetPointer kSet = std::make_shared<const PlanSet>(
      plan_set_of(request_on_two_pools(), planner::search(request_on_two_pools())));
  return kSet;
}

// The best plan of the set whose stages lie on so many pools.
inline std::size_t best_on(const PlanSet& set, std::size_t pools) {
  const auto found = std::ranges::find_if(set.plans, [&](const planner::PlanCandidate& each) {
    return pools_of(each.plan).size() == pools;
  });
  return static_cast<std::size_t>(found - set.plans.begin());
}

}  // namespace shardwright::gui
