#include "core/program/rank_grid.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <utility>

#include "core/program/groups.hpp"

namespace shardwright {
namespace {

Plan any_grid() {
  const auto degree = [] { return *rc::gen::element<std::int64_t>(1, 2, 3, 4); };
  Plan plan;
  plan.dp = degree();
  plan.tp = degree();
  plan.pp = degree();
  plan.cp = degree();
  for (std::size_t i = plan.rank_order.size() - 1; i > 0; --i)
    std::swap(plan.rank_order[i], plan.rank_order[*rc::gen::inRange<std::size_t>(0, i + 1)]);
  const auto divisor_of = [](std::int64_t number) {
    std::int64_t divisor = *rc::gen::inRange<std::int64_t>(1, number + 1);
    while (number % divisor != 0) --divisor;
    return divisor;
  };
  const std::int64_t stage = plan.dp * plan.tp * plan.cp;
  plan.expert_tp = divisor_of(stage);
  plan.ep = divisor_of(stage / plan.expert_tp);
  plan.shard_group = *rc::gen::arbitrary<bool>() ? divisor_of(plan.dp * plan.cp) : 0;
  return plan;
}

// Megatron's default order, by hand: tp = 2, dp = 2, pp = 2 gives ranks t + 2 d + 4 p.
TEST(RankGrid, NumbersRanksInnermostAxisFirst) {
  Plan plan;
  plan.tp = plan.dp = plan.pp = 2;
  const RankGrid grid(plan);
  EXPECT_EQ(grid.locate(6), (StageRank{1, 2}));
  EXPECT_EQ(grid.dense_coordinates(6)[Axis::Data], 1);
  const GroupTable data = grid.table(Group::Data);
  const auto members = data.members_of(data.group_of[5]);
  EXPECT_EQ(std::vector<std::int32_t>(members.begin(), members.end()),
            (std::vector<std::int32_t>{5, 7}));
}

RC_GTEST_PROP(RankGrid, PlacesAndRanksAreOneToOne, ()) {
  const RankGrid grid(any_grid());
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for (std::int64_t rank = 0; rank < grid.world_size(); ++rank) {
    const StageRank place = grid.locate(rank);
    RC_ASSERT(grid.rank_at(place) == rank);
    RC_ASSERT(seen.emplace(place.stage, place.index).second);
    RC_ASSERT(grid.dense_coordinates(rank)[Axis::Pipeline] == place.stage);
  }
}

// Each rank is in one group of a kind, which has the size that `group_size` says.
RC_GTEST_PROP(RankGrid, GroupsDivideTheWorld, ()) {
  const Plan plan = any_grid();
  const RankGrid grid(plan);
  for (int kind = 0; kind < kGroups; ++kind) {
    const auto group = static_cast<Group>(kind);
    if (group == Group::Pipeline) continue;
    if (group == Group::ExpertShardInner || group == Group::ExpertShardOuter) {
      const std::int64_t size = group_size(Group::ExpertData, plan);
      if (plan.shard_group > 0 && size % std::min(size, plan.shard_group) != 0) continue;
    }
    const GroupTable table = grid.table(group);
    std::set<std::int32_t> seen;
    for (std::uint32_t g = 0; g < table.groups(); ++g) {
      const auto members = table.members_of(g);
      const std::int64_t stage = grid.locate(members.front()).stage;
      const bool alone = group == Group::EmbeddingTie && stage != 0;
      RC_ASSERT(static_cast<std::int64_t>(members.size()) == (alone ? 1 : group_size(group, plan)));
      for (const std::int32_t rank : members) {
        RC_ASSERT(seen.insert(rank).second);
        RC_ASSERT(table.group_of[static_cast<std::size_t>(rank)] == g);
      }
    }
    RC_ASSERT(static_cast<std::int64_t>(seen.size()) == plan.world_size());
  }
}

}  // namespace
}  // namespace shardwright
