#include "gui/models/shown_ranks.hpp"

namespace shardwright::gui {

std::int64_t stage_of(const RankGrid& grid, std::int32_t rank) {
  return rank >= 0 && rank < grid.world_size() ? grid.locate(rank).stage : -1;
}

std::map<std::int64_t, std::int32_t> first_ranks(const Timeline& timeline, const RankGrid& grid) {
  std::map<std::int64_t, std::int32_t> ranks;
  for (const TimelineRank& shown : timeline.ranks) {
    const std::int64_t stage = stage_of(grid, shown.rank);
    if (stage >= 0) ranks.try_emplace(stage, shown.rank);
  }
  return ranks;
}

}  // namespace shardwright::gui
