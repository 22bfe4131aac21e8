#include "core/program/rank_grid.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/program/group_lattice.hpp"
#include "core/program/groups.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/plan_check.hpp"
#include "tests/core/program/enumerated_groups.hpp"
#include "tests/core/spec/random_plan.hpp"

namespace shardwright {
namespace {

Plan any_power_of_two_plan() {
  const auto degree = [] { return *rc::gen::element<std::int64_t>(1, 2, 4, 8); };
  Plan plan = any_plan_of_degrees({1, 2, 4, 8});
  const std::int64_t stage = plan.dp * plan.tp * plan.cp;
  plan.expert_tp = std::min(degree(), stage);
  plan.ep = std::min(degree(), stage / plan.expert_tp);
  plan.shard_group = *rc::gen::arbitrary<bool>() ? std::min(degree(), plan.dp * plan.cp) : 0;
  if (*rc::gen::arbitrary<bool>()) plan.schedule = ScheduleKind::DualPipe;
  return plan;
}

Plan any_sharded_plan() {
  Plan plan = any_plan_of_degrees({1, 2, 3, 4, 6});
  plan.ep = *rc::gen::element<std::int64_t>(1, 2, 3, 4, 6);
  plan.expert_tp = *rc::gen::element<std::int64_t>(1, 2, 3, 4, 6);
  plan.shard_group = *rc::gen::inRange<std::int64_t>(0, plan.dp * plan.cp + 1);
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
  const RankGrid grid(any_power_of_two_plan());
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for (std::int64_t rank = 0; rank < grid.world_size(); ++rank) {
    const StageRank place = grid.locate(rank);
    RC_ASSERT(grid.rank_at(place) == rank);
    RC_ASSERT(seen.emplace(place.stage, place.index).second);
    RC_ASSERT(grid.dense_coordinates(rank)[Axis::Pipeline] == place.stage);
  }
}

// Replicas on pools have stages of their own, and the groups that they have without pools.
RC_GTEST_PROP(RankGrid, ReplicasOnPoolsKeepTheirRanksAndGroups, ()) {
  Plan plan = any_plan_of_degrees({1, 2, 4});
  std::erase(plan.rank_order, Axis::Data);
  plan.rank_order.push_back(Axis::Data);
  const RankGrid before(plan);
  std::int64_t left = plan.dp;
  for (const char* pool : {"a", "b", "c"}) {
    const std::int64_t replicas = *rc::gen::inRange<std::int64_t>(0, left + 1);
    if (replicas > 0) plan.replica_pools.push_back({pool, replicas, 1});
    left -= replicas;
  }
  if (left > 0) plan.replica_pools.push_back({"d", left, 2});
  const RankGrid grid(plan);
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(count_stages(plan)));
  for (std::int64_t rank = 0; rank < grid.world_size(); ++rank) {
    const StageRank place = grid.locate(rank);
    RC_ASSERT(grid.rank_at(place) == rank);
    RC_ASSERT(place.index < grid.stage_size(place.stage));
    ++ranks[static_cast<std::size_t>(place.stage)];
    RC_ASSERT(place.stage % plan.pp == before.locate(rank).stage);
    RC_ASSERT(grid.dense_coordinates(rank) == before.dense_coordinates(rank));
    const std::size_t part = part_of_replica(plan, grid.dense_coordinates(rank)[Axis::Data]);
    RC_ASSERT(place.stage / plan.pp == static_cast<std::int64_t>(part));
  }
  for (std::size_t stage = 0; stage < ranks.size(); ++stage)
    RC_ASSERT(ranks[stage] == ranks_of_stage(plan, stage));
  for (const Group group : enumerators<Group>()) {
    RC_ASSERT(grid.table(group).members == before.table(group).members);
    RC_ASSERT(grid.table(group).group_of == before.table(group).group_of);
  }
}

void expect_enumerated_groups(const Plan& plan) {
  const RankGrid grid(plan);
  for (int kind = 0; kind < kGroups; ++kind) {
    const auto group = static_cast<Group>(kind);
    const GroupTable table = grid.table(group);
    const auto expected = fixtures::enumerated_groups(group, plan);
    RC_ASSERT(table.groups() == expected.size());
    for (const auto& [key, members] : expected) {
      const std::uint32_t number = table.group_of[static_cast<std::size_t>(members.front())];
      const auto found = table.members_of(number);
      RC_ASSERT(std::vector<std::int64_t>(found.begin(), found.end()) == members);
      for (const std::int64_t rank : members)
        RC_ASSERT(table.group_of[static_cast<std::size_t>(rank)] == number);
    }
    if (group != Group::Pipeline)
      RC_ASSERT(group_lattice(group, plan).members() == group_size(group, plan));
  }
}

RC_GTEST_PROP(RankGrid, GroupsAreThoseOfAnEnumeration, ()) {
  expect_enumerated_groups(any_power_of_two_plan());
}

// The rules on groups let only such plans of any degrees pass whose groups are lattices.
RC_GTEST_PROP(RankGrid, RulesLetOnlyGroupsPassThatAreLattices, ()) {
  const ModelSpec model = load_model("mixtral-8x7b");
  const Plan plan = any_sharded_plan();
  for (const BrokenRule& broken : broken_rules(model, nullptr, plan)) {
    RC_PRE(broken.rule != PlanRule::ExpertGroups && broken.rule != PlanRule::ShardGroup &&
           broken.rule != PlanRule::RankOrder);
  }
  expect_enumerated_groups(plan);
}

}  // namespace
}  // namespace shardwright
