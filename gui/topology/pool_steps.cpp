#include "gui/topology/pool_steps.hpp"

#include <algorithm>

#include "core/spec/pools.hpp"

namespace shardwright::gui {
namespace {

// The stages of a pool are neighbours.
std::vector<PoolStages> stages_by_pool(const Plan& plan) {
  const std::int64_t ranks_of_stage = plan.world_size() / plan.pp;
  std::vector<PoolStages> all;
  std::int64_t first = 0;
  for (const std::string& pool : pools_of(plan)) {
    const std::int64_t count = std::count(plan.stage_pools.begin(), plan.stage_pools.end(), pool);
    all.push_back({pool, first, count, first * ranks_of_stage});
    first += count;
  }
  return all;
}

// The groups of whose ranks some lie on other pools.
bool spans_pools(Group group) {
  return group == Group::EmbeddingTie || group == Group::ModelParallel || group == Group::Mirror;
}

// What the ranks of the stages do among themselves, with numbers from 0.
Timeline part_of(const Timeline& timeline, const PoolStages& stages, std::int64_t ranks) {
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
    if (span.group && spans_pools(*span.group)) continue;
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
  if (plan.stage_pools.empty())
    return {std::make_shared<const PlacedStep>(scenario.cluster, plan, timeline)};
  std::vector<std::shared_ptr<const PlacedStep>> steps;
  for (const PoolStages& stages : stages_by_pool(plan)) {
    Plan own = plan;
    own.pp = stages.count;
    own.stage_pools.clear();
    const ClusterSpec cluster = *pool_cluster(scenario.cluster, stages.pool);
    const Timeline part =
        timeline == nullptr ? Timeline() : part_of(*timeline, stages, own.world_size());
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
