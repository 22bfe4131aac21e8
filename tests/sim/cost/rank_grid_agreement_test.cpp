// RankGrid lists the members of every group; group_lattice describes the group of rank 0 in closed
// form, of which the others are translations. Both must mean the same groups.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/program/groups.hpp"
#include "core/program/rank_grid.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/plan_check.hpp"
#include "sim/cost/placement.hpp"

namespace shardwright::sim {
namespace {

Plan any_power_of_two_plan() {
  const auto degree = [] { return *rc::gen::element<std::int64_t>(1, 2, 4, 8); };
  Plan plan;
  plan.dp = degree();
  plan.tp = degree();
  plan.pp = degree();
  plan.cp = degree();
  const std::int64_t stage = plan.dp * plan.tp * plan.cp;
  plan.expert_tp = std::min(degree(), stage);
  plan.ep = std::min(degree(), stage / plan.expert_tp);
  plan.shard_group = *rc::gen::arbitrary<bool>() ? std::min(degree(), plan.dp * plan.cp) : 0;
  if (*rc::gen::arbitrary<bool>()) plan.schedule = ScheduleKind::DualPipe;
  for (std::size_t i = plan.rank_order.size() - 1; i > 0; --i)
    std::swap(plan.rank_order[i], plan.rank_order[*rc::gen::inRange<std::size_t>(0, i + 1)]);
  return plan;
}

std::vector<std::int32_t> members_of(const GroupLattice& lattice, std::int32_t first) {
  std::vector<std::int32_t> members = {first};
  for (const auto& [count, stride] : lattice) {
    const std::size_t known = members.size();
    for (std::int64_t index = 1; index < count; ++index) {
      for (std::size_t i = 0; i < known; ++i)
        members.push_back(members[i] + static_cast<std::int32_t>(index * stride));
    }
  }
  std::sort(members.begin(), members.end());
  return members;
}

void expect_same_groups(const Plan& plan) {
  const RankGrid grid(plan);
  for (int kind = 0; kind < kGroups; ++kind) {
    const auto group = static_cast<Group>(kind);
    if (group == Group::Pipeline) continue;  // the lattice is a pair of neighbours
    const GroupTable table = grid.table(group);
    const GroupLattice lattice = group_lattice(group, plan);
    RC_ASSERT(lattice.members() == group_size(group, plan));
    for (std::uint32_t g = 0; g < table.groups(); ++g) {
      const auto found = table.members_of(g);
      const bool outermost = group == Group::EmbeddingTie || group == Group::Mirror;
      if (outermost && grid.locate(found.front()).stage != 0) continue;
      RC_ASSERT(std::vector<std::int32_t>(found.begin(), found.end()) ==
                members_of(lattice, found.front()));
    }
  }
}

RC_GTEST_PROP(RankGrid, GroupsAreThoseOfTheLattice, ()) {
  expect_same_groups(any_power_of_two_plan());
}

Plan any_sharded_plan() {
  const auto degree = [] { return *rc::gen::element<std::int64_t>(1, 2, 3, 4, 6); };
  Plan plan;
  plan.dp = degree();
  plan.tp = degree();
  plan.pp = degree();
  plan.cp = degree();
  plan.ep = degree();
  plan.expert_tp = degree();
  plan.shard_group = *rc::gen::inRange<std::int64_t>(0, plan.dp * plan.cp + 1);
  for (std::size_t i = plan.rank_order.size() - 1; i > 0; --i)
    std::swap(plan.rank_order[i], plan.rank_order[*rc::gen::inRange<std::size_t>(0, i + 1)]);
  return plan;
}

// Degrees of any kind: what the rules on groups let pass, both descriptions agree on.
RC_GTEST_PROP(RankGrid, RulesLetOnlyGroupsPassThatAreLattices, ()) {
  ModelSpec model = load_model("mixtral-8x7b");
  const Plan plan = any_sharded_plan();
  for (const BrokenRule& broken : broken_rules(model, nullptr, plan)) {
    RC_PRE(broken.rule != PlanRule::ExpertGroups && broken.rule != PlanRule::ShardGroup &&
           broken.rule != PlanRule::RankOrder);
  }
  expect_same_groups(plan);
}

}  // namespace
}  // namespace shardwright::sim
