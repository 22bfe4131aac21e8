#include "gui/topology/pool_steps.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/program/group_lattice.hpp"
#include "core/spec/plan_text.hpp"
#include "core/spec/pools.hpp"

namespace shardwright::gui {
namespace {

// The part of a plan on one pool, and a plan of this part alone.
struct PoolPart {
  PoolStages stages;
  Plan own;
};

// The stages of a pool are neighbours, and so are the replicas of one.
std::vector<PoolPart> parts_by_pool(const Plan& plan) {
  std::vector<PoolPart> parts;
  std::int64_t first = 0, rank = 0;
  for (const std::string& pool : pools_of(plan)) {
    Plan own = plan;
    own.stage_pools.clear();
    own.replica_pools.clear();
    const std::int64_t ranks = ranks_on_pool(plan, pool);
    if (plan.replica_pools.empty()) {
      own.pp = std::count(plan.stage_pools.begin(), plan.stage_pools.end(), pool);
    } else {
      own.dp = ranks / (plan.world_size() / plan.dp);
    }
    parts.push_back({{pool, first, own.pp, rank}, own});
    first += plan.replica_pools.empty() ? own.pp : 0;
    rank += ranks;
  }
  return parts;
}

// True for the groups of whose ranks some lie on other pools.
bool spans_pools(Group group, const Plan& plan) {
  if (!plan.replica_pools.empty()) return joins_pools_of_replicas(group, plan);
  return group == Group::EmbeddingTie || group == Group::ModelParallel || group == Group::Mirror;
}

// What the ranks of the stages do among themselves, with numbers from 0.
Timeline part_of(const Timeline& timeline, const Plan& plan, const PoolStages& stages,
                 std::int64_t ranks) {
  const auto before = static_cast<std::int32_t>(stages.first_rank);
  const auto is_here = [&](std::int32_t rank) { return rank >= before && rank - before < ranks; };
  Timeline part;
  part.origin = timeline.origin;
  for (TimelineRank rank : timeline.ranks) {
    if (!is_here(rank.rank)) continue;
    rank.rank -= before;
    part.ranks.push_back(std::move(rank));
  }
  for (Span span : timeline.spans) {
    if (!is_here(span.rank) || (span.peer >= 0 && !is_here(span.peer))) continue;
    if (span.group && spans_pools(*span.group, plan)) continue;
    span.rank -= before;
    if (span.peer >= 0) span.peer -= before;
    part.spans.push_back(std::move(span));
  }
  return part;
}

}  // namespace

std::vector<std::shared_ptr<const PlacedStep>> placed_steps(const Scenario& scenario,
                                                            const Timeline* timeline) {
  const Plan& plan = scenario.plan;
  if (!names_pools(plan))
    return {std::make_shared<const PlacedStep>(scenario.cluster, plan, timeline)};
  if (splits_replicas(plan))
    throw InputError("plan", {{"/plan/replica_pools", pools_text(plan),
                               "stages or replicas on pools: links of plans that place both are "
                               "not drawn"}});
  std::vector<std::shared_ptr<const PlacedStep>> steps;
  for (const auto& [stages, own] : parts_by_pool(plan)) {
    const ClusterSpec cluster = *pool_cluster(scenario.cluster, stages.pool);
    const Timeline part =
        timeline == nullptr ? Timeline() : part_of(*timeline, plan, stages, own.world_size());
    auto step = std::make_shared<PlacedStep>(cluster, own, &part, stages);
    // Loads are shares of the whole step, in which the other pools work, too.
    step->seconds = 0.0;
    for (std::size_t i = 0; timeline != nullptr && i < timeline->spans.size(); ++i)
      step->seconds = std::max(step->seconds, timeline->spans[i].end().value());
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace shardwright::gui
