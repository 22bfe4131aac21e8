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

// True if no axis but that of the pipeline lies around the replicas.
bool replicas_are_outermost(const Plan& plan) {
  const auto data = std::find(plan.rank_order.begin(), plan.rank_order.end(), Axis::Data);
  return std::all_of(data, plan.rank_order.end(), [&](Axis axis) {
    if (axis == Axis::Expert) return plan.ep == 1 || spreads_experts(plan);
    return axis == Axis::Data || axis == Axis::Pipeline || dense_degree(plan, axis) == 1;
  });
}

// True if the ranks of each stage of all replicas follow each other.
bool stages_are_outermost(const Plan& plan) {
  return plan.pp == 1 || ranks_inside_data(plan) == plan.tp * plan.cp;
}

bool have_the_same_pools(const PoolReplicas& a, const PoolReplicas& b, std::int64_t stages) {
  for (std::size_t stage = 0; stage < static_cast<std::size_t>(stages); ++stage)
    if (a.pool_of(stage) != b.pool_of(stage)) return false;
  return true;
}

// What is wrong with the pools that a part names.
std::optional<Problem> problem_of_names(const Plan& plan, std::size_t part) {
  const PoolReplicas& own = plan.replica_pools[part];
  const auto where = [&] { return fmt::format("/replica_pools/{}", part); };
  const std::size_t names = own.stage_pools.size();
  if (own.pool.empty() == (names == 0))
    return Problem{where(), names == 0 ? "no pool" : "a pool and stage_pools", "one or the other"};
  if (names != 0 && static_cast<std::int64_t>(names) != plan.pp)
    return Problem{where() + "/stage_pools",
                   format_plural(static_cast<std::int64_t>(names), "name"),
                   fmt::format("{}, one per pipeline stage", plan.pp)};
  for (std::size_t before = 0; before < part; ++before)
    if (have_the_same_pools(plan.replica_pools[before], own, plan.pp))
      return Problem{where() + (names == 0 ? "/pool" : "/stage_pools"),
                     names == 0 ? fmt::format("\"{}\" again", own.pool)
                                : fmt::format("{} again", fmt::join(own.stage_pools, ", ")),
                     "each pool once"};
  return std::nullopt;
}

// What replicas whose stages lie on several pools cannot be used with.
std::optional<Problem> problem_of_split_replicas(const Plan& plan) {
  if (plan.schedule == ScheduleKind::DualPipe)
    return Problem{"/schedule", name_of(plan.schedule),
                   "another schedule: its ranks hold two stages each"};
  if (!stages_are_outermost(plan) && ranks_inside_pipeline(plan) != plan.tp * plan.cp)
    return Problem{"/rank_order", "stages whose ranks lie apart",
                   "dp and pp last, so that the ranks of a stage lie on one pool"};
  return std::nullopt;
}

// What replicas on pools cannot be used with.
std::optional<Problem> problem_of_parts(const Plan& plan) {
  if (!plan.stage_pools.empty())
    return Problem{"/replica_pools", "stage_pools beside it", "one or the other"};
  if (first_replica(plan, plan.replica_pools.size()) != plan.dp)
    return Problem{"/replica_pools",
                   format_plural(first_replica(plan, plan.replica_pools.size()), "replica"),
                   fmt::format("{}, as dp says", plan.dp)};
  for (std::size_t part = 0; part < plan.replica_pools.size(); ++part)
    if (std::optional<Problem> problem = problem_of_names(plan, part)) return problem;
  const bool splits = splits_replicas(plan), several = plan.replica_pools.size() > 1;
  const bool apart = plan.pp > 1 && stages_are_outermost(plan) && several && !splits;
  if (apart || !replicas_are_outermost(plan))
    return Problem{"/rank_order", "replicas whose ranks lie apart",
                   "dp last, so that the ranks of a replica lie on one pool"};
  if (splits)
    if (std::optional<Problem> problem = problem_of_split_replicas(plan)) return problem;
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

std::vector<std::int64_t> experts_of_parts(const Plan& plan) {
  std::vector<std::int64_t> experts;
  for (const PoolReplicas& part : plan.replica_pools) experts.push_back(part.experts);
  return experts;
}

// What is wrong with the numbers of experts that the parts state.
std::optional<Problem> problem_of_numbers(const PlanSubject& s) {
  if (!numbers_experts(s.plan)) return std::nullopt;
  const auto parts = [&] { return fmt::format("{}", fmt::join(experts_of_parts(s.plan), ", ")); };
  if (!s.model.moe || !spreads_experts(s.plan))
    return Problem{"/replica_pools", parts() + " experts of a rank",
                   "no such numbers: no group of experts spans several replicas"};
  const std::int64_t all = s.model.moe->experts;
  const std::int64_t share = expert_replicas(s.plan) * s.plan.expert_tp;
  double held = 0.0;
  bool some = true;
  for (const PoolReplicas& part : s.plan.replica_pools) {
    some = some && part.experts > 0;
    held += static_cast<double>(part.experts) *
            static_cast<double>(part.replicas * s.plan.tp * s.plan.cp / share);
  }
  if (some && held == static_cast<double>(all)) return std::nullopt;
  return Problem{"/replica_pools", fmt::format("{} experts of a rank, {} in all", parts(), held),
                 fmt::format("at least one on each rank, and the {} of a layer on the {} ranks of "
                             "a group",
                             all, s.plan.ep)};
}

// What is wrong with groups of experts that span several replicas. The ranks of a part have the
// same places in all groups, so that each group has the same ranks of each part.
std::optional<Problem> problem_of_experts(const PlanSubject& s) {
  const Plan& plan = s.plan;
  if (!spreads_experts(plan) || plan.replica_pools.size() < 2) return problem_of_numbers(s);
  if (splits_replicas(plan))
    return Problem{"/ep", fmt::format("experts over {} ranks", plan.ep * plan.expert_tp),
                   fmt::format("a divisor of the {} ranks of a stage that a replica has, where the "
                               "stages of replicas lie on several pools",
                               plan.tp * plan.cp)};
  if (plan.expert_tp > 1)
    return Problem{"/expert_tp", fmt::format("{}", plan.expert_tp),
                   "1, where groups of experts span replicas on several pools"};
  // Each pool would hide another part of the same exchange.
  if (plan.overlap.expert_microbatches)
    return Problem{"/overlap/expert_microbatches", "true",
                   "false, where groups of experts span replicas on several pools"};
  const auto place = [&](Axis axis) { return std::ranges::find(plan.rank_order, axis); };
  if (expert_replicas(plan) > 1 && place(Axis::Expert) < place(Axis::Data))
    return Problem{"/rank_order", "copies of an expert whose ranks lie apart",
                   "ep behind dp, so that all copies of an expert lie on one pool"};
  const std::int64_t share = expert_replicas(plan);
  for (std::size_t part = 0; part < plan.replica_pools.size(); ++part) {
    const PoolReplicas& own = plan.replica_pools[part];
    const std::int64_t ranks = own.replicas * plan.tp * plan.cp;
    if (ranks % share != 0)
      return Problem{fmt::format("/replica_pools/{}/replicas", part),
                     fmt::format("{} ranks of a stage", ranks),
                     fmt::format("a multiple of the {} that share an expert", share)};
    if (own.microbatches != plan.replica_pools.front().microbatches)
      return Problem{fmt::format("/replica_pools/{}/microbatches", part),
                     fmt::format("{}", own.microbatches),
                     fmt::format("{}, as on all pools that groups of experts span",
                                 plan.replica_pools.front().microbatches)};
  }
  return problem_of_numbers(s);
}

// Consecutive ranks on one pool, and the first part and stage that has some of them.
struct RankRun {
  std::size_t part = 0, stage = 0;
  RanksOnPool placed;
};

// The runs of ranks on one pool, in the order of the ranks.
std::vector<RankRun> runs_of_ranks(const Plan& plan) {
  const std::vector<PoolReplicas>& parts = plan.replica_pools;
  std::vector<RankRun> runs;
  const auto add = [&](std::size_t part, std::size_t stage, std::int64_t ranks) {
    const std::int64_t before =
        runs.empty() ? 0 : runs.back().placed.before + runs.back().placed.ranks;
    const bool goes_on = !runs.empty() && parts[runs.back().part].pool_of(runs.back().stage) ==
                                              parts[part].pool_of(stage);
    if (goes_on) {
      runs.back().placed.ranks += ranks;
    } else {
      runs.push_back({part, stage, {before, ranks}});
    }
  };
  const auto stages = static_cast<std::size_t>(plan.pp);
  const std::int64_t ranks = plan.tp * plan.cp;
  if (stages_are_outermost(plan)) {
    for (std::size_t stage = 0; stage < stages; ++stage)
      for (std::size_t part = 0; part < parts.size(); ++part)
        add(part, stage, ranks * parts[part].replicas);
    return runs;
  }
  for (std::size_t part = 0; part < parts.size(); ++part) {
    // The further replicas of a part on several pools come back to its first pool.
    const std::int64_t turns = std::min<std::int64_t>(parts[part].replicas, 2);
    if (parts[part].stage_pools.empty()) add(part, 0, ranks * plan.pp * parts[part].replicas);
    for (std::int64_t turn = 0; turn < turns && !parts[part].stage_pools.empty(); ++turn)
      for (std::size_t stage = 0; stage < stages; ++stage) add(part, stage, ranks);
  }
  return runs;
}

std::optional<Problem> problem_of_replicas(const PlanSubject& s) {
  const std::vector<PoolReplicas>& parts = s.plan.replica_pools;
  if (parts.empty()) return std::nullopt;
  std::optional<Problem> problem = problem_of_parts(s.plan);
  if (!problem) problem = problem_of_experts(s);
  if (problem) return problem;
  std::vector<std::string> before;
  for (const auto& [part, stage, placed] : runs_of_ranks(s.plan)) {
    const std::string& name = parts[part].pool_of(stage);
    const std::string where =
        fmt::format("/replica_pools/{}/", part) +
        (parts[part].stage_pools.empty() ? "pool" : fmt::format("stage_pools/{}", stage));
    if (std::find(before.begin(), before.end(), name) != before.end())
      return Problem{where, fmt::format("\"{}\" again after another pool", name),
                     "neighbouring ranks on each pool"};
    before.push_back(name);
    problem = problem_of_place(s, name, where, placed);
    if (problem) return problem;
  }
  return std::nullopt;
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
