// The groups of a plan by brute force: coordinates of every rank, counted in the plan's order, and
// the ranks that agree in all coordinates which a kind of group keeps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "core/op/op.hpp"
#include "core/spec/plan.hpp"

namespace shardwright::fixtures {

struct Coordinates {
  std::map<Axis, std::int64_t> dense, expert;
};

inline std::map<Axis, std::int64_t> dense_degrees(const Plan& plan) {
  return {{Axis::Tensor, plan.tp},
          {Axis::Context, plan.cp},
          {Axis::Expert, 1},
          {Axis::Data, plan.dp},
          {Axis::Pipeline, plan.pp}};
}

inline std::map<Axis, std::int64_t> expert_degrees(const Plan& plan) {
  return {{Axis::Tensor, plan.expert_tp},
          {Axis::Context, 1},
          {Axis::Expert, plan.ep},
          {Axis::Data, plan.dp * plan.cp * plan.tp / (plan.expert_tp * plan.ep)},
          {Axis::Pipeline, plan.pp}};
}

inline std::vector<Coordinates> enumerate(const Plan& plan) {
  std::map<Axis, std::int64_t> dense = dense_degrees(plan), expert = expert_degrees(plan);
  std::vector<Coordinates> ranks;
  std::map<std::int64_t, std::int64_t> seen_of_stage;
  for (std::int64_t rank = 0; rank < plan.world_size(); ++rank) {
    Coordinates c;
    std::int64_t rest = rank;
    for (const Axis axis : plan.rank_order) {
      c.dense[axis] = rest % dense[axis];
      rest /= dense[axis];
    }
    rest = seen_of_stage[c.dense[Axis::Pipeline]]++;
    for (const Axis axis : plan.rank_order) {
      if (axis == Axis::Pipeline) continue;
      c.expert[axis] = rest % expert[axis];
      rest /= expert[axis];
    }
    c.expert[Axis::Pipeline] = c.dense[Axis::Pipeline];
    ranks.push_back(c);
  }
  return ranks;
}

// The number of a rank among those that differ along `axes`, which are counted in the plan's order.
inline std::int64_t number_along(const Plan& plan, const std::vector<Axis>& axes,
                                 const std::map<Axis, std::int64_t>& place,
                                 const std::map<Axis, std::int64_t>& degrees) {
  std::int64_t number = 0, members = 1;
  for (const Axis axis : plan.rank_order) {
    if (std::ranges::find(axes, axis) == axes.end()) continue;
    number += place.at(axis) * members;
    members *= degrees.at(axis);
  }
  return number;
}

// Ranks with the same key are in one group.
inline std::vector<std::int64_t> group_key(Group group, const Plan& plan, const Coordinates& c) {
  const auto& d = c.dense;
  const auto& e = c.expert;
  const std::int64_t stage = d.at(Axis::Pipeline);
  const std::int64_t data = number_along(plan, {Axis::Context, Axis::Data}, d, dense_degrees(plan));
  const std::int64_t copy = e.at(Axis::Data), copies = expert_degrees(plan).at(Axis::Data);
  const std::int64_t shards = plan.shard_group == 0 ? plan.dp * plan.cp : plan.shard_group;
  const std::int64_t expert_shards =
      plan.shard_group == 0 ? copies : std::min(copies, plan.shard_group);
  const auto of_expert = [&](std::int64_t part) {
    return std::vector<std::int64_t>{e.at(Axis::Tensor), e.at(Axis::Expert), stage, part};
  };
  const auto of_stages = [&](std::int64_t part) {
    return std::vector<std::int64_t>{d.at(Axis::Tensor), data, part};
  };
  switch (group) {
    case Group::Tensor:
      return {data, stage};
    case Group::Context:
      return {d.at(Axis::Tensor), d.at(Axis::Data), stage};
    case Group::Data:
      return {d.at(Axis::Tensor), stage};
    case Group::Expert:
      return {e.at(Axis::Tensor), copy, stage};
    case Group::ExpertTensor:
      return {e.at(Axis::Expert), copy, stage};
    case Group::ExpertData:
      return of_expert(0);
    case Group::ShardInner:
      return {d.at(Axis::Tensor), stage, data / shards};
    case Group::ShardOuter:
      return {d.at(Axis::Tensor), stage, data % shards};
    case Group::ExpertShardInner:
      return of_expert(copy / expert_shards);
    case Group::ExpertShardOuter:
      return of_expert(copy % expert_shards);
    case Group::ModelParallel:
      return {data};
    case Group::Pipeline:
      return of_stages(0);
    case Group::EmbeddingTie:
      return of_stages(stage + 1 == plan.pp ? 0 : stage);
    case Group::Mirror:
      return of_stages(
          plan.schedule == ScheduleKind::DualPipe ? std::min(stage, plan.pp - 1 - stage) : stage);
  }
  return {};
}

// The members of every group of the kind, ascending, by the key that they share.
inline std::map<std::vector<std::int64_t>, std::vector<std::int64_t>> enumerated_groups(
    Group group, const Plan& plan) {
  const std::vector<Coordinates> ranks = enumerate(plan);
  std::map<std::vector<std::int64_t>, std::vector<std::int64_t>> groups;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    groups[group_key(group, plan, ranks[rank])].push_back(static_cast<std::int64_t>(rank));
  return groups;
}

}  // namespace shardwright::fixtures
