// The ways in which the stages of a pipeline lie on several pools of a cluster, and the ways in
// which its chunks share the layers (docs/models/pools.md).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/spec/cluster_spec.hpp"
#include "core/spec/plan.hpp"

namespace shardwright::planner {

// Stages on two or more pools, each with the same number of ranks.
struct Placement {
  // The pool of each stage; the stages of a pool are neighbours.
  std::vector<std::string> stage_pools;
  std::int64_t stage_ranks = 1;

  std::int64_t stages() const { return static_cast<std::int64_t>(stage_pools.size()); }
  std::int64_t world_size() const { return stages() * stage_ranks; }

  bool operator==(const Placement&) const = default;
};

struct PlacementLimits {
  // The most accelerators of a placement, and its most stages.
  std::int64_t gpus = 1, max_pp = 1;
};

// The number of the pool's accelerators, at most `most`.
std::int64_t pool_size(const ClusterSpec& cluster, const std::string& pool, std::int64_t most);

// A pool, the number of its accelerators, and that of the ranks of a scale-up domain.
struct SizedPool {
  std::string name;
  std::int64_t accelerators = 0;
  std::int64_t domain = 1;
};

// All pools of the cluster; each counts as `most` accelerators at the most.
std::vector<SizedPool> pools_within(const ClusterSpec& cluster, std::int64_t most);

// The accelerators of all pools, of which each counts as `most` at the most.
std::int64_t size_of_pools(const ClusterSpec& cluster, std::int64_t most);

// Every placement, on any two or more of the pools and in any order of them, that the pools' sizes
// and scale-up domains allow; nothing where there are more than `most`.
std::optional<std::vector<Placement>> all_placements(const ClusterSpec& cluster,
                                                     const PlacementLimits& limits,
                                                     std::size_t most);

// Of these the ones with as many stages as fit, whose ranks divide one of the pools. Where the
// limit of accelerators leaves a choice, the first or the last pools are full.
std::vector<Placement> full_placements(const ClusterSpec& cluster, const PlacementLimits& limits);

// Replicas of so many stages. Stages of all replicas follow each other in the ranks, or with
// `replicas_outermost` replicas of all stages.
struct SplitPlacement {
  // Their microbatches are open.
  std::vector<PoolReplicas> parts;
  std::int64_t stages = 1;
  bool replicas_outermost = false;

  std::int64_t replicas() const;
  const std::vector<Axis>& rank_order() const;
};

// The ways in which replicas of `stages` stages lie on several pools each: `cells` places each
// stage of each replica.
std::vector<SplitPlacement> split_placements(const Placement& cells, std::int64_t stages);

// The number of splits of the layers into chunks: at least one layer in each chunk but the first
// and the last. At most 1e9.
std::int64_t count_splits(std::int64_t layers, std::int64_t chunks);

// Calls `visit` with the layers of each chunk, for each split in lexicographic order.
void for_each_split(std::int64_t layers, std::int64_t chunks,
                    const std::function<void(const std::vector<std::int64_t>&)>& visit);

// The load of a stage: seconds of a microbatch.
struct StageLoad {
  // Of each layer.
  double layer = 0.0;
  // Of what the stage has beside layers.
  double fixed = 0.0;
  // The stage's chunks, by their place in forward order.
  std::vector<std::size_t> chunks;
};

// The split whose most loaded stage has the least load, where all layers are alike.
std::vector<std::int64_t> balanced_split(std::int64_t layers, const std::vector<StageLoad>& stages);

// The stage's chunk with the most or the fewest layers, of equals the first.
std::size_t largest_chunk(const StageLoad& stage, const std::vector<std::int64_t>& layers);
std::size_t smallest_chunk(const StageLoad& stage, const std::vector<std::int64_t>& layers);

// Moves a layer from one chunk to another. False if the chunk has no layer to spare.
bool move_layer(std::size_t from, std::size_t to, std::vector<std::int64_t>& layers);

}  // namespace shardwright::planner
