#include "planner/placements.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/spec/pools.hpp"
#include "planner/search_space.hpp"

namespace shardwright::planner {
namespace {

using Numbers = std::vector<std::int64_t>;

using Pool = SizedPool;

// Calls `visit` for each order of two or more of the pools.
void for_each_order(const std::vector<Pool>& pools, std::vector<Pool>& order,
                    const std::function<void(const std::vector<Pool>&)>& visit) {
  if (order.size() > 1) visit(order);
  for (const Pool& pool : pools) {
    const bool taken = std::any_of(order.begin(), order.end(),
                                   [&](const Pool& each) { return each.name == pool.name; });
    if (taken) continue;
    order.push_back(pool);
    for_each_order(pools, order, visit);
    order.pop_back();
  }
}

std::int64_t smallest(const std::vector<Pool>& pools) {
  return std::min_element(
             pools.begin(), pools.end(),
             [](const Pool& a, const Pool& b) { return a.accelerators < b.accelerators; })
      ->accelerators;
}

Placement placement_of(const std::vector<Pool>& order, std::int64_t ranks, const Numbers& stages) {
  Placement placement{{}, ranks};
  for (std::size_t i = 0; i < order.size(); ++i)
    placement.stage_pools.insert(placement.stage_pools.end(), static_cast<std::size_t>(stages[i]),
                                 order[i].name);
  return placement;
}

// Appends all placements with so many ranks a stage, up to one more than `most`.
void append_all(const std::vector<Pool>& order, std::int64_t ranks, const PlacementLimits& limits,
                std::size_t most, Numbers& stages, std::vector<Placement>& placements) {
  if (placements.size() > most) return;
  const std::size_t next = stages.size();
  if (next == order.size()) {
    placements.push_back(placement_of(order, ranks, stages));
    return;
  }
  const std::int64_t before = std::accumulate(stages.begin(), stages.end(), std::int64_t{0});
  if (before * ranks % order[next].domain != 0) return;
  const std::int64_t room = std::min(
      {order[next].accelerators / ranks, limits.gpus / ranks - before, limits.max_pp - before});
  for (std::int64_t count = 1; count <= room; ++count) {
    stages.push_back(count);
    append_all(order, ranks, limits, most, stages, placements);
    stages.pop_back();
  }
}

// As many stages as fit, those of the first pools first, or those of the last pools. None where
// the scale-up domains of a pool leave no number of stages before it.
std::optional<Placement> full_placement(const std::vector<Pool>& order, std::int64_t ranks,
                                        const PlacementLimits& limits, bool from_last) {
  const auto pools = static_cast<std::int64_t>(order.size());
  std::int64_t left = std::min(limits.gpus / ranks, limits.max_pp) - pools;
  if (left < 0) return std::nullopt;
  Numbers stages(order.size(), 1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t pool = from_last ? order.size() - 1 - i : i;
    const std::int64_t more = std::min(order[pool].accelerators / ranks - 1, left);
    stages[pool] += more;
    left -= more;
  }
  std::int64_t before = 0, freed = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int64_t more = std::min(freed, order[i].accelerators / ranks - stages[i]);
    stages[i] += more;
    freed -= more;
    const std::int64_t domain = i + 1 < order.size() ? order[i + 1].domain : 1;
    for (; stages[i] > 0 && (before + stages[i]) * ranks % domain != 0; ++freed) --stages[i];
    if (stages[i] == 0) return std::nullopt;
    before += stages[i];
  }
  return placement_of(order, ranks, stages);
}

// The pools of one replica's stages.
PoolReplicas one_replica(const Placement& cells, std::int64_t stages, std::int64_t replicas,
                         std::int64_t replica, bool outermost) {
  std::vector<std::string> pools;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    const std::int64_t cell = outermost ? replica * stages + stage : stage * replicas + replica;
    pools.push_back(cells.stage_pools[static_cast<std::size_t>(cell)]);
  }
  if (pools.front() == pools.back()) return {pools.front(), 1, 1};
  return {"", 1, 1, pools};
}

void append_splits(std::int64_t layers, std::size_t chunk, Numbers& split,
                   const std::function<void(const Numbers&)>& visit) {
  const std::size_t last = split.size() - 1;
  if (chunk == last) {
    split[chunk] = layers;
    visit(split);
    return;
  }
  // The chunks between this one and the last need a layer each.
  const auto needed = static_cast<std::int64_t>(last - chunk - 1);
  for (split[chunk] = chunk == 0 ? 0 : 1; split[chunk] <= layers - needed; ++split[chunk])
    append_splits(layers - split[chunk], chunk + 1, split, visit);
}

bool is_end(std::size_t chunk, const Numbers& layers) {
  return chunk == 0 || chunk + 1 == layers.size();
}

}  // namespace

std::int64_t pool_size(const ClusterSpec& cluster, const std::string& pool, std::int64_t most) {
  return std::min(most, pool_cluster(cluster, pool)->most_accelerators().value_or(most));
}

std::vector<SizedPool> pools_within(const ClusterSpec& cluster, std::int64_t most) {
  std::vector<SizedPool> pools;
  for (const std::string& name : names_of_pools(cluster))
    pools.push_back({name, pool_size(cluster, name, most),
                     ranks_per_domain(pool_cluster(cluster, name)->node)});
  return pools;
}

std::int64_t size_of_pools(const ClusterSpec& cluster, std::int64_t most) {
  std::int64_t size = 0;
  for (const std::string& pool : names_of_pools(cluster)) size += pool_size(cluster, pool, most);
  return size;
}

std::optional<std::vector<Placement>> all_placements(const ClusterSpec& cluster,
                                                     const PlacementLimits& limits,
                                                     std::size_t most) {
  std::vector<Placement> placements;
  std::vector<Pool> chosen;
  for_each_order(pools_within(cluster, limits.gpus), chosen, [&](const std::vector<Pool>& order) {
    Numbers stages;
    for (std::int64_t ranks = 1; ranks <= smallest(order) && placements.size() <= most; ++ranks)
      append_all(order, ranks, limits, most, stages, placements);
  });
  if (placements.size() > most) return std::nullopt;
  return placements;
}

std::vector<Placement> full_placements(const ClusterSpec& cluster, const PlacementLimits& limits) {
  std::vector<Placement> placements;
  std::vector<Pool> chosen;
  for_each_order(pools_within(cluster, limits.gpus), chosen, [&](const std::vector<Pool>& order) {
    for (std::int64_t ranks = 1; ranks <= smallest(order); ++ranks) {
      const bool divides = std::any_of(order.begin(), order.end(), [&](const Pool& pool) {
        return pool.accelerators % ranks == 0;
      });
      if (!divides) continue;
      for (const bool from_last : {false, true}) {
        std::optional<Placement> full = full_placement(order, ranks, limits, from_last);
        if (full && std::find(placements.begin(), placements.end(), *full) == placements.end())
          placements.push_back(*std::move(full));
      }
    }
  });
  return placements;
}

std::int64_t SplitPlacement::replicas() const {
  std::int64_t all = 0;
  for (const PoolReplicas& part : parts) all += part.replicas;
  return all;
}

const std::vector<Axis>& SplitPlacement::rank_order() const {
  static const std::vector<Axis> kUsual = Plan().rank_order;
  return replicas_outermost ? pipeline_inside_data() : kUsual;
}

std::vector<SplitPlacement> split_placements(const Placement& cells, std::int64_t stages) {
  std::vector<SplitPlacement> placements;
  const std::int64_t replicas = cells.stages() / stages;
  for (const bool outermost : {false, true}) {
    SplitPlacement placement{{}, stages, outermost};
    for (std::int64_t replica = 0; replica < replicas; ++replica) {
      PoolReplicas part = one_replica(cells, stages, replicas, replica, outermost);
      const bool joins = !placement.parts.empty() &&
                         placement.parts.back().stage_pools == part.stage_pools &&
                         placement.parts.back().pool == part.pool;
      if (joins)
        ++placement.parts.back().replicas;
      else
        placement.parts.push_back(std::move(part));
    }
    const bool splits = std::any_of(placement.parts.begin(), placement.parts.end(),
                                    [](const auto& part) { return part.pool.empty(); });
    if (splits && placement.parts.size() > 1) placements.push_back(std::move(placement));
  }
  return placements;
}

// Of n = layers + 1 places, chunks - 1 borders: the layers that the inner chunks need are set
// aside.
std::int64_t count_splits(std::int64_t layers, std::int64_t chunks) {
  constexpr double kMost = 1e9;
  if (chunks == 1) return 1;
  const std::int64_t places = layers + 1, borders = chunks - 1;
  if (borders > places) return 0;
  double count = 1.0;
  for (std::int64_t i = 1; i <= std::min(borders, places - borders) && count < kMost; ++i)
    count = count * static_cast<double>(places + 1 - i) / static_cast<double>(i);
  return static_cast<std::int64_t>(std::min(std::round(count), kMost));
}

void for_each_split(std::int64_t layers, std::int64_t chunks,
                    const std::function<void(const Numbers&)>& visit) {
  if (count_splits(layers, chunks) == 0) return;
  Numbers split(static_cast<std::size_t>(chunks));
  append_splits(layers, 0, split, visit);
}

std::vector<std::int64_t> balanced_split(std::int64_t layers,
                                         const std::vector<StageLoad>& stages) {
  std::size_t chunks = 0;
  for (const StageLoad& stage : stages) chunks += stage.chunks.size();
  Numbers split(chunks);
  Numbers held(stages.size());
  const auto add = [&](std::size_t stage, std::size_t chunk) {
    ++split[chunk];
    ++held[stage];
    --layers;
  };
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    for (const std::size_t chunk : stages[stage].chunks) {
      if (!is_end(chunk, split)) add(stage, chunk);
    }
  }
  const auto load_with_one_more = [&](std::size_t stage) {
    return stages[stage].fixed + stages[stage].layer * static_cast<double>(held[stage] + 1);
  };
  while (layers > 0) {
    std::size_t least = 0;
    for (std::size_t stage = 1; stage < stages.size(); ++stage) {
      if (load_with_one_more(stage) < load_with_one_more(least)) least = stage;
    }
    add(least, smallest_chunk(stages[least], split));
  }
  return split;
}

std::size_t largest_chunk(const StageLoad& stage, const std::vector<std::int64_t>& layers) {
  return *std::ranges::max_element(stage.chunks, {}, [&](std::size_t i) { return layers[i]; });
}

std::size_t smallest_chunk(const StageLoad& stage, const std::vector<std::int64_t>& layers) {
  return *std::ranges::min_element(stage.chunks, {}, [&](std::size_t i) { return layers[i]; });
}

bool move_layer(std::size_t from, std::size_t to, std::vector<std::int64_t>& layers) {
  if (layers[from] <= (is_end(from, layers) ? 0 : 1)) return false;
  --layers[from];
  ++layers[to];
  return true;
}

}  // namespace shardwright::planner
