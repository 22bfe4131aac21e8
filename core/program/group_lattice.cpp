#include "core/program/group_lattice.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "core/base/error.hpp"
#include "core/program/groups.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/rank_nesting.hpp"

namespace shardwright {
namespace {

// Adds a run of `count` ranks of a stage, `stride` apart in the stage's own numbering, as ranks of
// the world: where the pipeline axis lies inside of the run, it cuts the run in two.
void append_stage_run(GroupLattice& lattice, std::int64_t count, std::int64_t stride,
                      const Plan& plan) {
  const std::int64_t inside = ranks_inside_pipeline(plan);
  if (stride >= inside) return lattice.append(count, stride * plan.pp);
  const std::int64_t low = std::min(count, inside / stride);
  lattice.append(low, stride);
  lattice.append(count / low, inside * plan.pp);
}

using Degree = std::int64_t (*)(const Plan&, Axis);

// The members that differ along `axes`, in a stage that is numbered by `degree`.
GroupLattice stage_lattice(const Plan& plan, Degree degree, std::initializer_list<Axis> axes) {
  GroupLattice lattice;
  std::int64_t stride = 1;
  for (const Axis axis : plan.rank_order) {
    if (axis == Axis::Pipeline) continue;
    const std::int64_t ranks = degree(plan, axis);
    if (std::ranges::find(axes, axis) != axes.end()) append_stage_run(lattice, ranks, stride, plan);
    stride *= ranks;
  }
  return lattice;
}

// The innermost `size` members of a lattice, and the members that hold the same place in other such
// parts.
struct Split {
  GroupLattice inner, outer;
};

Split split(const GroupLattice& lattice, std::int64_t size) {
  Split result;
  std::int64_t left = size;
  for (const GroupDimension& dimension : lattice) {
    const std::int64_t inner = std::min(left, dimension.count);
    result.inner.append(inner, dimension.stride);
    result.outer.append(dimension.count / inner, dimension.stride * inner);
    left = std::max<std::int64_t>(1, left / inner);
  }
  return result;
}

Split shard_split(const Plan& plan, const GroupLattice& data) {
  const std::int64_t size = data.members();
  return split(data, plan.shard_group == 0 ? size : std::min(plan.shard_group, size));
}

}  // namespace

void GroupLattice::append(std::int64_t count, std::int64_t stride) {
  if (count <= 1) return;
  SHARDWRIGHT_CHECK(used_ < dimensions_.size(), "too many dimensions");
  dimensions_[used_++] = {count, stride};
}

void GroupLattice::insert(GroupDimension dimension) {
  append(dimension.count, dimension.stride);
  std::stable_sort(dimensions_.begin(), dimensions_.begin() + static_cast<std::ptrdiff_t>(used_),
                   [](const auto& a, const auto& b) { return a.stride < b.stride; });
}

std::int64_t GroupLattice::members() const {
  std::int64_t members = 1;
  for (const GroupDimension& dimension : *this) members *= dimension.count;
  return members;
}

std::int64_t GroupLattice::first_member(std::int64_t rank) const {
  std::int64_t first = rank;
  for (const auto& [count, stride] : *this) first -= rank / stride % count * stride;
  return first;
}

GroupLattice group_lattice(Group group, const Plan& plan) {
  const auto dense = [&](auto... axes) { return stage_lattice(plan, dense_degree, {axes...}); };
  const auto expert = [&](Axis axis) { return stage_lattice(plan, expert_degree, {axis}); };
  const auto with_stages = [&](GroupLattice lattice, std::int64_t stages, std::int64_t hops) {
    lattice.insert({stages, ranks_inside_pipeline(plan) * hops});
    return lattice;
  };
  const std::int64_t pair = std::min<std::int64_t>(plan.pp, 2);
  switch (group) {
    case Group::Tensor:
      return dense(Axis::Tensor);
    case Group::Context:
      return dense(Axis::Context);
    case Group::Data:
      return dense(Axis::Context, Axis::Data);
    case Group::Expert:
      return expert(Axis::Expert);
    case Group::ExpertTensor:
      return expert(Axis::Tensor);
    case Group::ExpertData:
      return expert(Axis::Data);
    case Group::ShardInner:
      return shard_split(plan, dense(Axis::Context, Axis::Data)).inner;
    case Group::ShardOuter:
      return shard_split(plan, dense(Axis::Context, Axis::Data)).outer;
    case Group::ExpertShardInner:
      return shard_split(plan, expert(Axis::Data)).inner;
    case Group::ExpertShardOuter:
      return shard_split(plan, expert(Axis::Data)).outer;
    case Group::Pipeline:
      return with_stages({}, plan.pp, 1);
    case Group::EmbeddingTie:
      return with_stages({}, pair, plan.pp - 1);
    case Group::Mirror:
      return with_stages({}, group_size(Group::Mirror, plan), plan.pp - 1);
    case Group::ModelParallel:
      return with_stages(dense(Axis::Tensor), plan.pp, 1);
  }
  SHARDWRIGHT_CHECK(false, "unknown group " + std::to_string(static_cast<int>(group)));
  return {};
}

bool joins_pools_of_replicas(Group group, const Plan& plan) {
  const bool over_replicas =
      (axis_of(group) == Axis::Data && group != Group::Mirror) || group == Group::Expert;
  if (!over_replicas || plan.replica_pools.size() < 2) return false;
  const GroupLattice lattice = group_lattice(group, plan);
  const std::int64_t replica = ranks_inside_data(plan);
  for (std::size_t part = 1; part < plan.replica_pools.size(); ++part) {
    const std::int64_t first = first_replica(plan, part) * replica;
    if (lattice.first_member(first) < first) return true;
  }
  return false;
}

}  // namespace shardwright
