#include "core/program/rank_grid.hpp"

#include <algorithm>
#include <numeric>

#include "core/base/error.hpp"
#include "core/program/group_lattice.hpp"
#include "core/program/groups.hpp"
#include "core/spec/rank_nesting.hpp"

namespace shardwright {
namespace {

GroupTable collect(const std::vector<std::int64_t>& first_members) {
  const std::size_t ranks = first_members.size();
  GroupTable table;
  table.group_of.resize(ranks);
  table.first_member.push_back(0);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto first = static_cast<std::size_t>(first_members[rank]);
    if (first == rank) {
      table.group_of[rank] = static_cast<std::uint32_t>(table.first_member.size() - 1);
      table.first_member.push_back(0);
    }
    table.group_of[rank] = table.group_of[first];
    ++table.first_member[table.group_of[rank] + 1];
  }
  std::partial_sum(table.first_member.begin(), table.first_member.end(),
                   table.first_member.begin());
  table.members.resize(ranks);
  std::vector<std::uint32_t> next = table.first_member;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    table.members[next[table.group_of[rank]]++] = static_cast<std::int32_t>(rank);
  return table;
}

}  // namespace

RankGrid::RankGrid(const Plan& plan) : plan_(plan), inside_pipeline_(ranks_inside_pipeline(plan)) {
  for (std::int64_t stage = 0; stage < count_stages(plan); ++stage)
    largest_stage_ = std::max(largest_stage_, stage_size(stage));
}

StageRank RankGrid::locate(std::int64_t rank) const {
  StageRank place = place_in_replicas(rank);
  if (plan_.replica_pools.empty()) return place;
  const std::int64_t of_replica = plan_.tp * plan_.cp;
  const std::size_t part = part_of_replica(plan_, place.index / of_replica);
  return {place.stage + static_cast<std::int64_t>(part) * plan_.pp,
          place.index - first_replica(plan_, part) * of_replica};
}

// The place if the stages of all replicas were the same.
StageRank RankGrid::place_in_replicas(std::int64_t rank) const {
  return {rank / inside_pipeline_ % plan_.pp,
          rank % inside_pipeline_ + rank / (inside_pipeline_ * plan_.pp) * inside_pipeline_};
}

std::int64_t RankGrid::rank_at(StageRank place) const {
  if (!plan_.replica_pools.empty()) {
    const auto part = static_cast<std::size_t>(place.stage / plan_.pp);
    place.stage %= plan_.pp;
    place.index += first_replica(plan_, part) * plan_.tp * plan_.cp;
  }
  const std::int64_t outer = place.index / inside_pipeline_;
  return place.index % inside_pipeline_ + (outer * plan_.pp + place.stage) * inside_pipeline_;
}

RankCoordinates RankGrid::dense_coordinates(std::int64_t rank) const {
  const StageRank place = place_in_replicas(rank);
  RankCoordinates result;
  std::int64_t rest = place.index;
  for (const Axis axis : plan_.rank_order) {
    const std::int64_t degree = dense_degree(plan_, axis);
    result[axis] = rest % degree;
    rest /= degree;
  }
  result[Axis::Pipeline] = place.stage;
  return result;
}

// Pairs are no lattice of all ranks: a tied embedding leaves the stages between its two out, and
// the mirror images lie ever closer together.
std::int64_t RankGrid::first_of_pair(Group group, std::int64_t rank) const {
  const StageRank place = locate(rank);
  const std::int64_t in_replica = place.stage % plan_.pp, mirror = plan_.pp - 1 - in_replica;
  const bool paired =
      group == Group::Mirror ? group_size(group, plan_) > 1 : mirror == 0 || in_replica == 0;
  const std::int64_t first = place.stage - in_replica + std::min(in_replica, mirror);
  return paired ? rank_at({first, place.index}) : rank;
}

GroupTable RankGrid::table(Group group) const {
  SHARDWRIGHT_CHECK(world_size() <= INT32_MAX, "more ranks than a table numbers");
  const bool pairs = group == Group::EmbeddingTie || group == Group::Mirror;
  const GroupLattice lattice = group_lattice(group, plan_);
  std::vector<std::int64_t> first_members(static_cast<std::size_t>(world_size()));
  for (std::int64_t rank = 0; rank < world_size(); ++rank) {
    first_members[static_cast<std::size_t>(rank)] =
        pairs ? first_of_pair(group, rank) : lattice.first_member(rank);
  }
  return collect(first_members);
}

}  // namespace shardwright
