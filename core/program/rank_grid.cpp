#include "core/program/rank_grid.hpp"

#include <algorithm>
#include <numeric>

#include "core/base/error.hpp"
#include "core/program/groups.hpp"

namespace shardwright {
namespace {

constexpr Axis kTensor[] = {Axis::Tensor};
constexpr Axis kContext[] = {Axis::Context};
constexpr Axis kExpert[] = {Axis::Expert};
constexpr Axis kData[] = {Axis::Data};
constexpr Axis kContextAndData[] = {Axis::Context, Axis::Data};

bool has(std::span<const Axis> axes, Axis axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

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

RankGrid::RankGrid(const Plan& plan)
    : stages_(plan.pp),
      stage_ranks_(plan.dp * plan.tp * plan.cp),
      shard_group_(plan.shard_group),
      mirrors_(group_size(Group::Mirror, plan) > 1) {
  dense_[Axis::Tensor] = plan.tp;
  dense_[Axis::Context] = plan.cp;
  dense_[Axis::Expert] = 1;
  dense_[Axis::Data] = plan.dp;
  expert_[Axis::Tensor] = plan.expert_tp;
  expert_[Axis::Context] = 1;
  expert_[Axis::Expert] = plan.ep;
  expert_[Axis::Data] = std::max<std::int64_t>(1, stage_ranks_ / (plan.expert_tp * plan.ep));
  bool inside = true;
  for (const Axis axis : plan.rank_order) {
    if (axis == Axis::Pipeline) {
      inside = false;
      continue;
    }
    order_.push_back(axis);
    if (inside) inside_pipeline_ *= dense_[axis];
  }
}

StageRank RankGrid::locate(std::int64_t rank) const {
  return {rank / inside_pipeline_ % stages_,
          rank % inside_pipeline_ + rank / (inside_pipeline_ * stages_) * inside_pipeline_};
}

std::int64_t RankGrid::rank_at(StageRank place) const {
  const std::int64_t outer = place.index / inside_pipeline_;
  return place.index % inside_pipeline_ + (outer * stages_ + place.stage) * inside_pipeline_;
}

RankCoordinates RankGrid::coordinates(std::int64_t rank, const Degrees& degrees) const {
  const StageRank place = locate(rank);
  RankCoordinates result;
  result[Axis::Pipeline] = place.stage;
  std::int64_t rest = place.index;
  for (const Axis axis : order_) {
    result[axis] = rest % degrees[axis];
    rest /= degrees[axis];
  }
  return result;
}

RankCoordinates RankGrid::dense_coordinates(std::int64_t rank) const {
  return coordinates(rank, dense_);
}

RankCoordinates RankGrid::expert_coordinates(std::int64_t rank) const {
  return coordinates(rank, expert_);
}

std::int64_t RankGrid::index_of(const RankCoordinates& place, const Degrees& degrees) const {
  std::int64_t index = 0, stride = 1;
  for (const Axis axis : order_) {
    index += place[axis] * stride;
    stride *= degrees[axis];
  }
  return index;
}

// The rank at place 0 along `axes` that agrees with `rank` along all others.
std::int64_t RankGrid::at_zero(std::int64_t rank, const Degrees& degrees,
                               std::span<const Axis> axes) const {
  RankCoordinates place = coordinates(rank, degrees);
  for (const Axis axis : axes) place[axis] = 0;
  return rank_at({place[Axis::Pipeline], index_of(place, degrees)});
}

// The members along `axes`, numbered with the inner axis first, fall into runs of the shard group's
// size. An inner group is one run; an outer group has the same place in each run.
std::int64_t RankGrid::in_shard_group(std::int64_t rank, const Degrees& degrees,
                                      std::span<const Axis> axes, bool inner) const {
  RankCoordinates place = coordinates(rank, degrees);
  std::int64_t number = 0, members = 1;
  for (const Axis axis : order_) {
    if (!has(axes, axis)) continue;
    number += place[axis] * members;
    members *= degrees[axis];
  }
  const std::int64_t size = shard_group_ == 0 ? members : std::min(shard_group_, members);
  std::int64_t first = inner ? number / size * size : number % size;
  for (const Axis axis : order_) {
    if (!has(axes, axis)) continue;
    place[axis] = first % degrees[axis];
    first /= degrees[axis];
  }
  return rank_at({place[Axis::Pipeline], index_of(place, degrees)});
}

std::int64_t RankGrid::first_member(Group group, std::int64_t rank) const {
  switch (group) {
    case Group::Tensor:
      return at_zero(rank, dense_, kTensor);
    case Group::Context:
      return at_zero(rank, dense_, kContext);
    case Group::Expert:
      return at_zero(rank, expert_, kExpert);
    case Group::ExpertTensor:
      return at_zero(rank, expert_, kTensor);
    case Group::Data:
      return at_zero(rank, dense_, kContextAndData);
    case Group::ExpertData:
      return at_zero(rank, expert_, kData);
    case Group::ShardInner:
    case Group::ShardOuter:
      return in_shard_group(rank, dense_, kContextAndData, group == Group::ShardInner);
    case Group::ExpertShardInner:
    case Group::ExpertShardOuter:
      return in_shard_group(rank, expert_, kData, group == Group::ExpertShardInner);
    case Group::Pipeline:
      return rank_at({0, locate(rank).index});
    case Group::EmbeddingTie: {
      const StageRank place = locate(rank);
      return place.stage + 1 == stages_ ? rank_at({0, place.index}) : rank;
    }
    case Group::Mirror: {
      if (!mirrors_) return rank;
      const StageRank place = locate(rank);
      return rank_at({std::min(place.stage, stages_ - 1 - place.stage), place.index});
    }
    case Group::ModelParallel:
      return rank_at({0, locate(at_zero(rank, dense_, kTensor)).index});
  }
  return rank;
}

GroupTable RankGrid::table(Group group) const {
  SHARDWRIGHT_CHECK(world_size() <= INT32_MAX, "more ranks than a table numbers");
  std::vector<std::int64_t> first_members(static_cast<std::size_t>(world_size()));
  for (std::int64_t rank = 0; rank < world_size(); ++rank)
    first_members[static_cast<std::size_t>(rank)] = first_member(group, rank);
  return collect(first_members);
}

}  // namespace shardwright
