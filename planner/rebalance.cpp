#include "planner/rebalance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/program/shard_shape.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/pools.hpp"
#include "planner/explain.hpp"
#include "sim/step/simulate.hpp"

namespace shardwright::planner {
namespace {

// Microbatches of each replica, or layers of each stage.
struct WorkShares {
  MovableParts parts = MovableParts::Replicas;
  std::vector<std::int64_t> work;
};

std::vector<std::int64_t> layers_of_stages(const ModelSpec& model, const Plan& plan) {
  std::vector<std::int64_t> layers;
  for (const LayerRange& range : split_layers(model, plan)) layers.push_back(range.count);
  return layers;
}

// The shares of a plan that names no pools, or that `on_pools` has made.
WorkShares work_shares(const ModelSpec& model, const Plan& plan, MovableParts parts) {
  if (parts == MovableParts::Stages) return {parts, layers_of_stages(model, plan)};
  WorkShares shares{parts, {}};
  for (std::int64_t replica = 0; replica < plan.dp; ++replica)
    shares.work.push_back(plan_of_part(plan, part_of_replica(plan, replica)).microbatches());
  return shares;
}

// The slowdown of each of `count` parts of neighbouring ranks is that of its slowest rank.
std::vector<double> slowdown_of_parts(std::span<const double> ranks, std::size_t count) {
  const std::size_t size = ranks.size() / count;
  std::vector<double> slowdown;
  for (std::size_t part = 0; part < count; ++part) {
    const auto first = ranks.begin() + static_cast<std::ptrdiff_t>(part * size);
    slowdown.push_back(*std::max_element(first, first + static_cast<std::ptrdiff_t>(size)));
  }
  return slowdown;
}

// The cluster on which kernels and hosts take `slowdown` times as long.
ClusterSpec slowed_cluster(ClusterSpec cluster, double slowdown) {
  if (slowdown == 1.0) return cluster;
  for (const Resource resource :
       {Resource::PeakFlops, Resource::MemoryBandwidth, Resource::HostSpeed})
    cluster = improved(cluster, resource, 1.0 / slowdown - 1.0);
  AcceleratorSpec& accelerator = cluster.accelerator;
  for (Seconds* overhead :
       {&accelerator.efficiency.kernel_overhead, &accelerator.efficiency.gemm_overhead,
        &accelerator.burst.gemm_overhead})
    *overhead *= slowdown;
  return cluster;
}

// Nodes of so many accelerators, which the links inside of the whole node join.
void cut_nodes(ClusterSpec& cluster, std::int64_t accelerators) {
  NodeSpec& node = cluster.node;
  node.accelerators = node.scale_up.domain = accelerators;
  node.nic = {accelerators, node.scale_up.bandwidth, 1.0};
  cluster.fabric.name = "links inside of a node";
  cluster.fabric.kind = FabricKind::LeafSpine;
  cluster.fabric.base_latency = node.scale_up.latency;
  cluster.fabric.levels = {{kMaxWorld, 1.0, node.scale_up.latency}};
  cluster.nodes = 0;
}

// Neighbouring parts on one pool, with the speed of its ranks.
struct PoolRun {
  std::size_t first = 0, parts = 1;
  double slowdown = 1.0;
};

// Replicas of one speed may differ by a microbatch: these get pools of their own.
std::vector<PoolRun> runs_of(const WorkShares& shares, const std::vector<double>& slowdown) {
  std::vector<PoolRun> runs;
  for (std::size_t part = 0; part < slowdown.size(); ++part) {
    const bool same_work = shares.parts == MovableParts::Stages || part == 0 ||
                           shares.work[part] == shares.work[part - 1];
    if (!runs.empty() && same_work && runs.back().slowdown == slowdown[part])
      ++runs.back().parts;
    else
      runs.push_back({part, 1, slowdown[part]});
  }
  return runs;
}

// The accelerators of the nodes of a pool behind `before` ranks.
std::int64_t cut_node(std::int64_t before, std::int64_t domain) {
  return std::gcd(before, domain);
}

// The cluster with a pool for each run of parts of `size` ranks. The first one keeps its name.
ClusterSpec with_pools(const ClusterSpec& cluster, const std::vector<PoolRun>& runs,
                       std::int64_t size) {
  const std::int64_t domain = ranks_per_domain(cluster.node);
  const auto ranks_before = [&](const PoolRun& run) {
    return static_cast<std::int64_t>(run.first) * size;
  };
  const bool cuts = std::any_of(runs.begin(), runs.end(), [&](const PoolRun& run) {
    return ranks_before(run) % domain != 0;
  });
  std::vector<ClusterSpec> pools;
  for (const PoolRun& run : runs) {
    ClusterSpec& pool = pools.emplace_back(slowed_cluster(cluster, run.slowdown));
    const std::int64_t ranks = static_cast<std::int64_t>(run.parts) * size;
    if (cuts) cut_nodes(pool, cut_node(run.first == 0 ? ranks : ranks_before(run), domain));
    if (run.first == 0) continue;
    pool.name = fmt::format("ranks {} to {}", ranks_before(run), ranks_before(run) + ranks - 1);
  }
  ClusterSpec all = pools.front();
  for (std::size_t i = 1; i < pools.size(); ++i) {
    const ClusterSpec& pool = pools[i];
    all.pools.push_back(
        {pool.name, pool.accelerator, pool.node, pool.fabric, pool.nodes, pool.price});
  }
  return all;
}

// The ranks of a part have to be neighbours: its axis becomes the outermost one.
void make_outermost(Axis axis, std::vector<Axis>& order) {
  const auto found = std::find(order.begin(), order.end(), axis);
  if (found != order.end()) std::rotate(found, found + 1, order.end());
}

// The scenario with these shares, on a pool for each speed. Where all are equal, it names none.
Scenario on_pools(const Scenario& scenario, const WorkShares& shares,
                  std::span<const double> slowdown) {
  const std::vector<double> of_parts = slowdown_of_parts(slowdown, shares.work.size());
  const std::vector<PoolRun> runs = runs_of(shares, of_parts);
  Scenario placed = scenario;
  Plan& plan = placed.plan;
  if (shares.parts == MovableParts::Stages && shares.work != layers_of_stages(scenario.model, plan))
    plan.stage_layers = shares.work;
  if (runs.size() == 1) {
    placed.cluster = slowed_cluster(scenario.cluster, runs.front().slowdown);
    return placed;
  }
  const auto size =
      static_cast<std::int64_t>(slowdown.size()) / static_cast<std::int64_t>(shares.work.size());
  placed.cluster = with_pools(scenario.cluster, runs, size);
  const std::vector<std::string> names = names_of_pools(placed.cluster);
  const bool stages = shares.parts == MovableParts::Stages;
  if (plan.pp > 1) make_outermost(stages ? Axis::Pipeline : Axis::Data, plan.rank_order);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (stages) {
      plan.stage_layers = shares.work;
      plan.stage_pools.insert(plan.stage_pools.end(), runs[i].parts, names[i]);
    } else {
      plan.replica_pools.push_back(
          {names[i], static_cast<std::int64_t>(runs[i].parts), shares.work[runs[i].first]});
    }
  }
  return placed;
}

bool keeps_rules(const Scenario& scenario) {
  return broken_rules(scenario.model, &scenario.cluster, scenario.plan).empty();
}

// The time of each stage's embedding or head over that of a layer, by simulation.
std::vector<double> work_beside_layers(const Scenario& scenario,
                                       const std::vector<std::int64_t>& layers) {
  const sim::StepResult step = sim::simulate_step(scenario);
  std::vector<double> work;
  for (const sim::StageResult& stage : step.stages) work.push_back(stage.time.compute().value());
  double layer = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < work.size(); ++i)
    if (layers[i] > 0) layer = std::min(layer, work[i] / static_cast<double>(layers[i]));
  for (std::size_t i = 0; i < work.size(); ++i)
    work[i] = work[i] / layer - static_cast<double>(layers[i]);
  return work;
}

// Every way to share the work by the parts' speeds.
std::vector<WorkShares> balanced_shares(const Scenario& scenario,
                                        std::span<const double> slowdown) {
  std::vector<WorkShares> all;
  for (const MovableParts parts : movable_parts(scenario.plan)) {
    const WorkShares given = work_shares(scenario.model, scenario.plan, parts);
    const std::vector<double> of_parts = slowdown_of_parts(slowdown, given.work.size());
    if (parts == MovableParts::Stages) {
      all.push_back(
          {parts, moved_layers(given.work, work_beside_layers(scenario, given.work), of_parts)});
      continue;
    }
    // Interleaved schedules take multiples of the stages only.
    const auto sum = std::accumulate(given.work.begin(), given.work.end(), std::int64_t{0});
    for (const std::int64_t unit : {std::int64_t{1}, scenario.plan.pp}) {
      WorkShares shares{parts, shares_of_replicas(sum, of_parts, unit)};
      if (!shares.work.empty()) all.push_back(std::move(shares));
    }
  }
  return all;
}

// The plan so far on pools by the ranks' speeds; nothing if it cannot lie on pools.
std::optional<Scenario> placed_so_far(const Scenario& scenario, const Plan& now,
                                      std::span<const double> slowdown) {
  for (const MovableParts parts : movable_parts(scenario.plan)) {
    const bool other =
        parts == MovableParts::Stages
            ? !now.replica_pools.empty()
            : !now.stage_pools.empty() || now.stage_layers != scenario.plan.stage_layers;
    if (other) continue;
    Scenario placed = on_pools(scenario, work_shares(scenario.model, now, parts), slowdown);
    if (keeps_rules(placed)) return placed;
  }
  return std::nullopt;
}

void check_plans(const Scenario& scenario, const Plan& now, std::span<const double> slowdown) {
  SHARDWRIGHT_CHECK(static_cast<std::int64_t>(slowdown.size()) == scenario.plan.world_size(),
                    "a slowdown for each rank");
  ProblemList problems("replan");
  if (names_pools(scenario.plan))
    problems.add("the plan", "stages or replicas on pools", "a plan that names no pools");
  Plan without = now;
  without.stage_layers = scenario.plan.stage_layers;
  without.rank_order = scenario.plan.rank_order;
  without.stage_pools.clear();
  without.replica_pools.clear();
  if (without != scenario.plan)
    problems.add("the plan so far", "another plan",
                 "one that differs in the shares of its stages or replicas only");
  problems.throw_if_any();
}

}  // namespace

std::vector<std::int64_t> shares_of_replicas(std::int64_t microbatches,
                                             std::span<const double> slowdown, std::int64_t unit) {
  const auto replicas = static_cast<std::int64_t>(slowdown.size());
  if (microbatches % unit != 0 || microbatches < replicas * unit) return {};
  std::vector<std::int64_t> shares(slowdown.size(), unit);
  for (std::int64_t left = microbatches - replicas * unit; left > 0; left -= unit) {
    // Of equal times the faster replica's, then the first one's.
    const auto key = [&](std::size_t i) {
      return std::pair(static_cast<double>(shares[i] + unit) * slowdown[i], slowdown[i]);
    };
    std::size_t least = 0;
    for (std::size_t i = 1; i < shares.size(); ++i)
      if (key(i) < key(least)) least = i;
    shares[least] += unit;
  }
  return shares;
}

std::vector<std::int64_t> moved_layers(std::vector<std::int64_t> layers,
                                       std::span<const double> fixed,
                                       std::span<const double> slowdown) {
  const auto [fastest, slowest] = std::minmax_element(slowdown.begin(), slowdown.end());
  if (*fastest == *slowest) return layers;
  const auto time = [&](std::size_t stage, std::int64_t more) {
    return slowdown[stage] * (static_cast<double>(layers[stage] + more) + fixed[stage]);
  };
  while (true) {
    std::size_t from = 0, to = 0;
    for (std::size_t i = 1; i < layers.size(); ++i) {
      if (std::pair(time(i, 0), slowdown[i]) > std::pair(time(from, 0), slowdown[from])) from = i;
      if (std::pair(time(i, 1), slowdown[i]) < std::pair(time(to, 1), slowdown[to])) to = i;
    }
    if (layers[from] <= 1 || time(to, 1) >= time(from, 0)) return layers;
    --layers[from];
    ++layers[to];
  }
}

std::optional<Rebalanced> rebalance(const Scenario& scenario, const Plan& now,
                                    std::span<const double> slowdown) {
  check_plans(scenario, now, slowdown);
  const std::optional<Scenario> so_far = placed_so_far(scenario, now, slowdown);
  if (!so_far) return std::nullopt;
  const sim::StepResult before = sim::simulate_step(*so_far);
  // Layers that move take states along: a stage may need no more than the fullest one does now, if
  // that is more than the model of memory gives the accelerators.
  const Bytes room = std::max(scenario.cluster.accelerator.memory, before.memory().peak);
  std::optional<Rebalanced> best;
  for (const WorkShares& shares : balanced_shares(scenario, slowdown)) {
    Scenario placed = on_pools(scenario, shares, slowdown);
    if (!keeps_rules(placed)) continue;
    const sim::StepResult after = sim::simulate_step(placed);
    if (after.memory().peak > room || (best && after.step >= best->after)) continue;
    best = Rebalanced{std::move(placed), before.step, after.step};
  }
  return best && best->gain() >= kLeastRebalanceGain ? best : std::nullopt;
}

}  // namespace shardwright::planner
