// The members of a plan's communication groups as numbers of ranks.
//
// Ranks are numbered by the plan's `rank_order`, innermost axis first. Without the pipeline axis
// the same order numbers the ranks of one stage, over which the experts lie (rank_nesting.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/op/op.hpp"
#include "core/spec/plan.hpp"

namespace shardwright {

struct GroupDimension {
  std::int64_t count = 1;
  std::int64_t stride = 1;

  bool operator==(const GroupDimension&) const = default;
};

// A group's members: rank = first member + sum_i index_i * stride_i with 0 <= index_i < count_i.
// Dimensions of count 1 are left out; inner ones come first.
class GroupLattice {
 public:
  void append(std::int64_t count, std::int64_t stride);
  // Puts `dimension` in front of the first one that has a larger stride.
  void insert(GroupDimension dimension);

  std::int64_t members() const;
  // The first member of the group that `rank` is in. Dimensions nest: strides of outer ones are
  // multiples of the extents of inner ones.
  std::int64_t first_member(std::int64_t rank) const;
  bool empty() const { return used_ == 0; }
  const GroupDimension* begin() const { return dimensions_.data(); }
  const GroupDimension* end() const { return dimensions_.data() + used_; }

  bool operator==(const GroupLattice&) const = default;

 private:
  // A group has at most two axes, which the pipeline axis may each cut in two, and that axis
  // itself.
  std::array<GroupDimension, 6> dimensions_;
  std::size_t used_ = 0;
};

// The group that holds rank 0 of a plan that breaks no rule; every other group of the kind is
// a translation of it. `Group::Pipeline` has all stages of a pipeline, `Group::EmbeddingTie` and
// `Group::Mirror` the first and the last one.
GroupLattice group_lattice(Group group, const Plan& plan);

// True if some group of the kind has members in several parts of the replicas that the plan places.
bool joins_pools_of_replicas(Group group, const Plan& plan);

}  // namespace shardwright
