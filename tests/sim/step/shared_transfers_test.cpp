#include "sim/step/shared_transfers.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "core/program/rank_grid.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/cost/collective_cost.hpp"
#include "tests/core/spec/random_plan.hpp"

namespace shardwright::sim {
namespace {

constexpr BytesPerSecond kCapacity = BytesPerSecond(100.0);

TransferShape on_link(LinkIndex link, double share) {
  return {{Rail{{link}, kCapacity * share}}, 1.0};
}

std::vector<double> transfer_finishes(SharedTransfers& transfers, std::size_t count) {
  std::vector<double> times(count);
  while (const auto finished = transfers.next()) times[finished->owner.instance] = finished->time;
  return times;
}

// Two transfers of 1 s that each want the whole link. The second comes at 0.5 s: by then the first
// has 0.5 s left, which take 1 s at half the rate; the second then has 0.5 s left and the link
// alone.
TEST(SharedTransfers, ShareALinkFairlyWhileBothAreThere) {
  SharedTransfers transfers({kCapacity});
  const auto first = transfers.add_route(on_link(0, 1.0));
  const auto second = transfers.add_route(on_link(0, 1.0));
  transfers.begin({0, 0}, first, 0.0, 1.0);
  transfers.begin({0, 1}, second, 0.5, 1.0);
  const auto times = transfer_finishes(transfers, 2);
  EXPECT_DOUBLE_EQ(times[0], 1.5);
  EXPECT_DOUBLE_EQ(times[1], 2.0);
  EXPECT_DOUBLE_EQ(transfers.lost().value(), 1.0);
}

TEST(SharedTransfers, TakeTheirOwnTimeWhereTheLinkCarriesAll) {
  SharedTransfers transfers({kCapacity});
  std::vector<double> expected;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const double start = 0.1 * i, duration = 1.0 + 0.3 * i;
    transfers.begin({0, i}, transfers.add_route(on_link(0, 0.25)), start, duration);
    expected.push_back(start + duration);
  }
  EXPECT_EQ(transfer_finishes(transfers, 4), expected);
  EXPECT_LT(transfers.lost().value(), 1e-12);
}

// The transfer is as slow as the one of two rails that is shared.
TEST(SharedTransfers, AreAsSlowAsTheirSlowestRail) {
  SharedTransfers transfers({kCapacity, kCapacity});
  TransferShape both = on_link(0, 1.0);
  both.rails.push_back({{1}, kCapacity});
  transfers.begin({0, 0}, transfers.add_route(both), 0.0, 1.0);
  transfers.begin({0, 1}, transfers.add_route(on_link(1, 1.0)), 0.0, 3.0);
  const auto times = transfer_finishes(transfers, 2);
  EXPECT_DOUBLE_EQ(times[0], 2.0);
  EXPECT_DOUBLE_EQ(times[1], 4.0);
}

TEST(SharedTransfers, FollowEachOtherOnOneRoute) {
  SharedTransfers transfers({kCapacity});
  const auto route = transfers.add_route(on_link(0, 1.0));
  transfers.begin({0, 0}, route, 0.0, 1.0);
  const auto first = transfers.next();
  ASSERT_TRUE(first);
  transfers.begin({0, 1}, route, first->time, 1.0);
  const auto second = transfers.next();
  ASSERT_TRUE(second);
  EXPECT_DOUBLE_EQ(second->time, 2.0);
  EXPECT_FALSE(transfers.next());
}

// The load on each link while all groups of a kind run at once, or all messages from each stage to
// the next.
std::vector<double> loads(const NodeLinks& links, const TransferKind& kind, const Plan& plan) {
  std::vector<double> load(links.capacities().size());
  const auto add = [&](std::span<const std::int32_t> members) {
    for (const Rail& rail : links.shape(kind, members).rails) {
      for (const LinkIndex link : rail.route) load[link] += rail.rate.value();
    }
  };
  const RankGrid grid(plan);
  const GroupTable table = grid.table(kind.group);
  for (std::uint32_t group = 0; group < table.groups(); ++group) {
    if (kind.kind != OpKind::Send) add(table.members_of(group));
  }
  for (std::int64_t rank = 0; kind.kind == OpKind::Send && rank < grid.world_size(); ++rank) {
    const StageRank place = grid.locate(rank);
    if (place.stage + 1 == plan.pp) continue;
    const std::int32_t pair[] = {
        static_cast<std::int32_t>(rank),
        static_cast<std::int32_t>(grid.rank_at({place.stage + 1, place.index}))};
    add(pair);
  }
  return load;
}

// Prices assume that all groups of a kind run at once, so that these never slow each other down.
RC_GTEST_PROP(NodeLinks, CarryAllGroupsOfAKindAtOnce, ()) {
  const Plan plan = any_plan_of_degrees({1, 2, 4, 8});  // they line up with the nodes
  const ClusterSpec cluster = load_cluster(*rc::gen::elementOf(
      std::vector<std::string>{"dgx-h100", "a100-leaf-spine-2to1", "azure-nd-a100-v4"}));
  TransferKind kind;
  kind.group = *rc::gen::element(Group::Tensor, Group::Context, Group::Data, Group::Pipeline);
  kind.kind = kind.group == Group::Pipeline
                  ? OpKind::Send
                  : *rc::gen::element(OpKind::AllReduce, OpKind::AllGather, OpKind::AllToAll);
  kind.bytes = Bytes(*rc::gen::element(1e3, 1e6, 1e9));
  kind.duration =
      collective_time(kind.kind, kind.bytes, place(kind.group, plan, cluster), cluster, {}).value();
  const NodeLinks links(plan, cluster, {});
  const std::vector<double> load = loads(links, kind, plan);
  for (std::size_t link = 0; link < load.size(); ++link)
    RC_ASSERT(load[link] <= links.capacities()[link].value() * (1.0 + 1e-9));
}

}  // namespace
}  // namespace shardwright::sim
