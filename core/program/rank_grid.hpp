// Which rank is where: ranks and their coordinates along the axes of a plan, and who is in a group
// with whom.
//
// Ranks are numbered by the plan's `rank_order`, innermost axis first. Without the pipeline axis
// the same order numbers the ranks of one stage. The experts of a stage are laid over the same
// numbers: there the tensor axis has `expert_tp` ranks, the expert axis `ep`, the context axis
// none, and the data axis the rest (as Megatron Core's expert rank generator,
// github.com/NVIDIA/Megatron-LM, parallel_state.py).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/op/op.hpp"
#include "core/spec/plan.hpp"

namespace shardwright {

// A rank of the world as a stage and a number within the stage.
struct StageRank {
  std::int64_t stage = 0;
  std::int64_t index = 0;

  bool operator==(const StageRank&) const = default;
};

// Places along the axes, as the dense or as the expert layers number them.
using RankCoordinates = EnumArray<Axis, std::int64_t>;

// The groups of one kind. Each rank is in one of them; where the kind leaves a rank out, that rank
// is alone.
struct GroupTable {
  std::vector<std::uint32_t> group_of;      // by rank
  std::vector<std::uint32_t> first_member;  // by group, into `members`; one more at the end
  std::vector<std::int32_t> members;        // ascending within each group

  std::size_t groups() const { return first_member.size() - 1; }
  std::span<const std::int32_t> members_of(std::uint32_t group) const {
    return {members.data() + first_member[group], first_member[group + 1] - first_member[group]};
  }
};

class RankGrid {
 public:
  // A plan that `check_plan` accepts.
  explicit RankGrid(const Plan& plan);

  std::int64_t world_size() const { return stages_ * stage_ranks_; }
  std::int64_t stage_size() const { return stage_ranks_; }

  StageRank locate(std::int64_t rank) const;
  std::int64_t rank_at(StageRank place) const;

  RankCoordinates dense_coordinates(std::int64_t rank) const;
  RankCoordinates expert_coordinates(std::int64_t rank) const;

  // O(world size). For Group::Pipeline, whose messages go to neighbours, all stages of a pipeline
  // make a group.
  GroupTable table(Group group) const;

 private:
  using Degrees = RankCoordinates;

  RankCoordinates coordinates(std::int64_t rank, const Degrees& degrees) const;
  std::int64_t index_of(const RankCoordinates& place, const Degrees& degrees) const;
  std::int64_t first_member(Group group, std::int64_t rank) const;
  std::int64_t at_zero(std::int64_t rank, const Degrees& degrees, std::span<const Axis> axes) const;
  std::int64_t in_shard_group(std::int64_t rank, const Degrees& degrees, std::span<const Axis> axes,
                              bool inner) const;

  std::vector<Axis> order_;  // of a stage: without the pipeline axis
  Degrees dense_, expert_;
  std::int64_t stages_ = 1;
  std::int64_t stage_ranks_ = 1;
  std::int64_t inside_pipeline_ = 1;  // ranks between neighbouring stages
  std::int64_t shard_group_ = 0;
  bool mirrors_ = false;  // DualPipe
};

}  // namespace shardwright
