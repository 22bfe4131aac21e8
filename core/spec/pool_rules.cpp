#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "core/base/nearest_name.hpp"
#include "core/base/quantity_text.hpp"
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

// Consecutive ranks on one pool: those before them, and their number.
struct RanksOnPool {
  std::int64_t before = 0, ranks = 0;
};

// What is wrong with ranks on the pool of this name, which the plan has at `where`.
std::optional<Problem> problem_of_place(const PlanSubject& s, const std::string& name,
                                        const std::string& where, const RanksOnPool& placed) {
  if (s.cluster == nullptr) return std::nullopt;
  const std::optional<PoolPart> pool = find_pool(*s.cluster, name);
  if (!pool)
    return Problem{where, fmt::format("\"{}\"", name), one_of(name, names_of_pools(*s.cluster))};
  const auto most = pool->most_accelerators;
  if (most && placed.ranks > *most)
    return Problem{where, fmt::format("{} ranks on the pool {}", placed.ranks, name),
                   fmt::format("at most its {} accelerators", *most)};
  if (pool->accelerator.matrix.of(s.plan.precision) <= FlopPerSecond())
    return Problem{where, fmt::format("{} on the pool {}", name_of(s.plan.precision), name),
                   fmt::format("a format that {} multiplies in", pool->accelerator.name)};
  const std::int64_t domain = ranks_per_domain(pool->node);
  if (placed.before % domain != 0)
    return Problem{where, fmt::format("{} ranks before those of the pool {}", placed.before, name),
                   fmt::format("a multiple of the {} that its scale-up domains hold", domain)};
  return std::nullopt;
}

// What is wrong with a run of stages on a pool.
std::optional<Problem> problem_of_run(const PlanSubject& s, const StageRun& run) {
  const std::string& name = s.plan.stage_pools[run.first];
  const std::string where = fmt::format("/stage_pools/{}", run.first);
  const auto end_of_run = s.plan.stage_pools.begin() + static_cast<std::ptrdiff_t>(run.end);
  if (std::find(end_of_run, s.plan.stage_pools.end(), name) != s.plan.stage_pools.end())
    return Problem{where, fmt::format("\"{}\" again after another pool", name),
                   "neighbouring stages on each pool"};
  const std::int64_t stage = ranks_inside_pipeline(s.plan);
  return problem_of_place(s, name, where,
                          {stage * static_cast<std::int64_t>(run.first),
                           stage * static_cast<std::int64_t>(run.end - run.first)});
}

// What pools cannot be used with, be it for stages or for replicas.
std::optional<Problem> problem_of_pools(const Plan& plan) {
  if (plan.replicas.has_servers())
    return Problem{"/data_parallel/sync", name_of(plan.replicas.sync),
                   "another one: servers of several pools are not modelled"};
  if (plan.offloads_optimizer())
    return Problem{"/offload_optimizer", name_of(plan.offload_optimizer),
                   "none: hosts of several pools are not modelled"};
  return std::nullopt;
}

// What stages on pools cannot be used with.
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
  return problem_of_pools(plan);
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

// What replicas on pools cannot be used with.
std::optional<Problem> problem_of_parts(const Plan& plan) {
  if (!plan.stage_pools.empty())
    return Problem{"/replica_pools", "stage_pools beside it", "one or the other"};
  if (first_replica(plan, plan.replica_pools.size()) != plan.dp)
    return Problem{"/replica_pools",
                   format_plural(first_replica(plan, plan.replica_pools.size()), "replica"),
                   fmt::format("{}, as dp says", plan.dp)};
  const bool inside = plan.rank_order.empty() || plan.rank_order.back() != Axis::Data;
  if (plan.pp > 1 && inside)
    return Problem{"/rank_order", "replicas whose ranks lie apart",
                   "dp last, so that the ranks of a replica lie on one pool"};
  if (plan.tp * plan.cp % (plan.ep * plan.expert_tp) != 0)
    return Problem{"/ep", fmt::format("experts over {} ranks", plan.ep * plan.expert_tp),
                   fmt::format("a divisor of the {} ranks of a stage that a replica has: experts "
                               "of replicas on several pools are not modelled",
                               plan.tp * plan.cp)};
  const PoolReplicas& first = plan.replica_pools.front();
  const bool equal = std::all_of(
      plan.replica_pools.begin(), plan.replica_pools.end(),
      [&](const PoolReplicas& part) { return part.microbatches == first.microbatches; });
  if (!equal && plan.zero_stage > 1)
    return Problem{"/zero_stage", fmt::format("{}", plan.zero_stage),
                   "0 or 1: replicas that run different numbers of microbatches exchange nothing "
                   "between these"};
  if (!equal && plan.replicas.local())
    return Problem{"/data_parallel/sync", name_of(plan.replicas.sync),
                   "all-reduce: the mean over replicas with unequal shares is not modelled"};
  return problem_of_pools(plan);
}

std::optional<Problem> problem_of_replicas(const PlanSubject& s) {
  const std::vector<PoolReplicas>& parts = s.plan.replica_pools;
  if (parts.empty()) return std::nullopt;
  std::optional<Problem> problem = problem_of_parts(s.plan);
  const std::int64_t ranks = s.plan.tp * s.plan.cp * s.plan.pp;
  for (std::size_t part = 0; !problem && part < parts.size(); ++part) {
    const std::string where = fmt::format("/replica_pools/{}/pool", part);
    const bool again =
        std::any_of(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(part),
                    [&](const PoolReplicas& before) { return before.pool == parts[part].pool; });
    if (again)
      return Problem{where, fmt::format("\"{}\" again", parts[part].pool), "each pool once"};
    problem = problem_of_place(s, parts[part].pool, where,
                               {ranks * first_replica(s.plan, part), ranks * parts[part].replicas});
  }
  return problem;
}

}  // namespace

bool replica_pools_hold(const PlanSubject& s) {
  return s.plan.replica_pools.empty() || !problem_of_replicas(s);
}

Problem replica_pools_problem(const PlanSubject& s) {
  return *problem_of_replicas(s);
}

bool stage_pools_hold(const PlanSubject& s) {
  return s.plan.stage_pools.empty() || !problem_of(s);
}

Problem stage_pools_problem(const PlanSubject& s) {
  return *problem_of(s);
}

}  // namespace shardwright
