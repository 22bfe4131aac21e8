#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "core/base/nearest_name.hpp"
#include "core/spec/plan_rules.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/rank_nesting.hpp"

namespace shardwright {
namespace {

// Neighbouring stages on one pool.
struct StageRun {
  std::size_t first = 0, end = 0;
};

StageRun run_from(const std::vector<std::string>& pools, std::size_t first) {
  std::size_t end = first + 1;
  while (end < pools.size() && pools[end] == pools[first]) ++end;
  return {first, end};
}

// What the rule looks at of a pool; pool_cluster() would copy all of it.
struct PoolPart {
  const AcceleratorSpec& accelerator;
  const NodeSpec& node;
  std::optional<std::int64_t> most_accelerators;
};

std::optional<PoolPart> find_pool(const ClusterSpec& cluster, const std::string& name) {
  for (const PoolSpec& pool : cluster.pools) {
    if (pool.name == name) return PoolPart{pool.accelerator, pool.node, pool.most_accelerators()};
  }
  if (name != cluster.name) return std::nullopt;
  return PoolPart{cluster.accelerator, cluster.node, cluster.most_accelerators()};
}

// What is wrong with a run of stages on a pool.
std::optional<Problem> problem_of_run(const PlanSubject& s, const StageRun& run) {
  const std::string& name = s.plan.stage_pools[run.first];
  const std::string where = fmt::format("/stage_pools/{}", run.first);
  const auto end_of_run = s.plan.stage_pools.begin() + static_cast<std::ptrdiff_t>(run.end);
  if (std::find(end_of_run, s.plan.stage_pools.end(), name) != s.plan.stage_pools.end())
    return Problem{where, fmt::format("\"{}\" again after another pool", name),
                   "neighbouring stages on each pool"};
  if (s.cluster == nullptr) return std::nullopt;
  const std::optional<PoolPart> pool = find_pool(*s.cluster, name);
  if (!pool)
    return Problem{where, fmt::format("\"{}\"", name), one_of(name, names_of_pools(*s.cluster))};
  const std::int64_t stage = ranks_inside_pipeline(s.plan);
  const std::int64_t ranks = stage * static_cast<std::int64_t>(run.end - run.first);
  const auto most = pool->most_accelerators;
  if (most && ranks > *most)
    return Problem{where, fmt::format("{} ranks on the pool {}", ranks, name),
                   fmt::format("at most its {} accelerators", *most)};
  if (pool->accelerator.matrix.of(s.plan.precision) <= FlopPerSecond())
    return Problem{where, fmt::format("{} on the pool {}", name_of(s.plan.precision), name),
                   fmt::format("a format that {} multiplies in", pool->accelerator.name)};
  const std::int64_t before = stage * static_cast<std::int64_t>(run.first);
  const std::int64_t domain = ranks_per_domain(pool->node);
  if (before % domain != 0)
    return Problem{where, fmt::format("{} ranks before those of the pool {}", before, name),
                   fmt::format("a multiple of the {} that its scale-up domains hold", domain)};
  return std::nullopt;
}

// What pools cannot be used with.
std::optional<Problem> problem_of_plan(const Plan& plan) {
  if (static_cast<std::int64_t>(plan.stage_pools.size()) != plan.pp)
    return Problem{"/stage_pools", fmt::format("{} names", plan.stage_pools.size()),
                   fmt::format("{} names, one per pipeline stage", plan.pp)};
  if (plan.rank_order.empty() || plan.rank_order.back() != Axis::Pipeline)
    return Problem{"/rank_order", "stages whose ranks lie apart",
                   "pp last, so that the ranks of a stage lie on one pool"};
  if (plan.schedule == ScheduleKind::DualPipe)
    return Problem{"/schedule", name_of(plan.schedule),
                   "another schedule: its ranks hold two stages each"};
  if (plan.replicas.has_servers())
    return Problem{"/data_parallel/sync", name_of(plan.replicas.sync),
                   "another one: servers of several pools are not modelled"};
  if (plan.offloads_optimizer())
    return Problem{"/offload_optimizer", name_of(plan.offload_optimizer),
                   "none: hosts of several pools are not modelled"};
  return std::nullopt;
}

std::optional<Problem> problem_of(const PlanSubject& s) {
  if (s.plan.stage_pools.empty()) return std::nullopt;
  std::optional<Problem> problem = problem_of_plan(s.plan);
  for (std::size_t first = 0; !problem && first < s.plan.stage_pools.size();) {
    const StageRun run = run_from(s.plan.stage_pools, first);
    problem = problem_of_run(s, run);
    first = run.end;
  }
  return problem;
}

}  // namespace

bool stage_pools_hold(const PlanSubject& s) {
  return s.plan.stage_pools.empty() || !problem_of(s);
}

Problem stage_pools_problem(const PlanSubject& s) {
  return *problem_of(s);
}

}  // namespace shardwright
