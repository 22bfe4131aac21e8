// The ranks of a plan: their stages, their coordinates along the axes, and the members of their
// groups, numbered as group_lattice.hpp says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/op/op.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/pools.hpp"

namespace shardwright {

// A rank of the world as a stage and a number within the stage. Replicas on different pools have
// stages of their own (core/spec/pools.hpp).
struct StageRank {
  std::int64_t stage = 0;
  std::int64_t index = 0;

  bool operator==(const StageRank&) const = default;
};

// Places along the axes, as the dense layers number them.
using RankCoordinates = EnumArray<Axis, std::int64_t>;

// The groups of one kind. Each rank is in one of them; where the kind leaves a rank out, that rank
// is alone.
struct GroupTable {
  // The group of each rank.
  std::vector<std::uint32_t> group_of;
  // The place of each group's first member in `members`, and the end of these.
  std::vector<std::uint32_t> first_member;
  // The ranks of one group after the other, ascending within each.
  std::vector<std::int32_t> members;

  std::size_t groups() const { return first_member.size() - 1; }
  std::span<const std::int32_t> members_of(std::uint32_t group) const {
    return {members.data() + first_member[group], first_member[group + 1] - first_member[group]};
  }
};

class RankGrid {
 public:
  // A plan that breaks no rule.
  explicit RankGrid(const Plan& plan);

  std::int64_t world_size() const { return plan_.world_size(); }
  // The ranks of a stage; of replicas on several pools the most of any.
  std::int64_t largest_stage() const { return largest_stage_; }
  std::int64_t stage_size(std::int64_t stage) const {
    return ranks_of_stage(plan_, static_cast<std::size_t>(stage));
  }

  StageRank locate(std::int64_t rank) const;
  std::int64_t rank_at(StageRank place) const;

  // Along the pipeline, stages of replicas on several pools count from 0 in each replica.
  RankCoordinates dense_coordinates(std::int64_t rank) const;

  // Takes O(world size) time. For Group::Pipeline, whose messages go to neighbours, all stages of a
  // pipeline make a group.
  GroupTable table(Group group) const;

 private:
  StageRank place_in_replicas(std::int64_t rank) const;
  std::int64_t first_of_pair(Group group, std::int64_t rank) const;

  Plan plan_;
  std::int64_t largest_stage_ = 1;
  // Ranks between neighbouring stages.
  std::int64_t inside_pipeline_ = 1;
};

}  // namespace shardwright
