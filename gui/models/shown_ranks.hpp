// The stages of a plan that a timeline shows, with their ranks.
#pragma once

#include <cstdint>
#include <map>

#include "core/program/rank_grid.hpp"
#include "core/timeline/timeline.hpp"

namespace shardwright::gui {

// -1 for a rank that the plan does not have.
std::int64_t stage_of(const RankGrid& grid, std::int32_t rank);

// Returns by stage the first of its ranks that the timeline lists.
std::map<std::int64_t, std::int32_t> first_ranks(const Timeline& timeline, const RankGrid& grid);

}  // namespace shardwright::gui
