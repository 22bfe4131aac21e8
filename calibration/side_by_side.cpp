// A measured step and its prediction in one timeline.
#include <fmt/format.h>

#include <algorithm>

#include "calibration/calibrate.hpp"
#include "core/program/rank_grid.hpp"
#include "sim/step/predicted_timeline.hpp"

namespace shardwright::calibration {
namespace {

Timeline prediction(const Scenario& scenario, const ClusterSpec& cluster) {
  const StackSpec stack = stack_on(cluster, scenario.stack);
  return sim::trace_step({scenario.model, cluster, stack, scenario.plan})->timeline;
}

// The later a rank's clock began, the later its spans lie.
Seconds first_clock(const MeasuredStep& step) {
  Seconds first = step.ranks.front().ranks.front().clock;
  for (const Timeline& timeline : step.ranks) first = std::min(first, timeline.ranks.front().clock);
  return first;
}

void add_measured(const Timeline& measured, std::int32_t rank, std::int64_t stage, Seconds shift,
                  Timeline& both) {
  both.ranks.push_back({2 * rank, fmt::format("rank {}, stage {}: measured", rank, stage)});
  for (Span span : measured.spans) {
    span.rank = 2 * rank;
    if (span.peer >= 0) span.peer = 2 * span.peer;
    span.start += shift;
    both.spans.push_back(std::move(span));
  }
}

void add_predicted(const Timeline& predicted, std::int32_t rank, StageRank place,
                   const RankGrid& grid, Timeline& both) {
  both.ranks.push_back(
      {2 * rank + 1, fmt::format("rank {}, stage {}: predicted", rank, place.stage)});
  for (Span span : predicted.spans) {
    if (grid.locate(span.rank).stage != place.stage) continue;
    span.rank = 2 * rank + 1;
    if (span.peer >= 0) {
      const std::int64_t stage = grid.locate(span.peer).stage;
      span.peer = 2 * static_cast<std::int32_t>(grid.rank_at({stage, place.index})) + 1;
    }
    both.spans.push_back(std::move(span));
  }
}

}  // namespace

Timeline side_by_side(const MeasuredRun& run, const ClusterSpec& cluster) {
  const RankGrid grid(run.scenario.plan);
  const Timeline predicted = prediction(run.scenario, cluster);
  const MeasuredStep& step = run.steps.back();
  const Seconds origin = first_clock(step);
  Timeline both;
  both.origin = TimelineOrigin::Measured;
  for (std::size_t r = 0; r < step.ranks.size(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    const StageRank place = grid.locate(rank);
    add_measured(step.ranks[r], rank, place.stage, step.ranks[r].ranks.front().clock - origin,
                 both);
    add_predicted(predicted, rank, place, grid, both);
  }
  return both;
}

}  // namespace shardwright::calibration
