#include "sim/cost/placement.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/spec/profile_library.hpp"
#include "sim/cost/collective_cost.hpp"
#include "tests/core/program/enumerated_groups.hpp"
#include "tests/core/spec/random_plan.hpp"

namespace shardwright::sim {

namespace {

ClusterSpec cluster_with_domain(std::int64_t accelerators) {
  ClusterSpec cluster;
  cluster.node.accelerators = accelerators;
  cluster.node.scale_up.domain = accelerators;
  return cluster;
}

GroupPlacement placement_of_groups(const std::vector<std::vector<std::int64_t>>& groups,
                                   std::int64_t domain) {
  GroupPlacement worst;
  std::map<std::int64_t, std::int64_t> sharing;
  for (const auto& members : groups) {
    std::map<std::int64_t, std::int64_t> on_node;
    for (const std::int64_t rank : members) ++on_node[rank / domain];
    const auto nodes = static_cast<std::int64_t>(on_node.size());
    std::int64_t most = 0;
    for (const auto& [node, count] : on_node) {
      most = std::max(most, count);
      if (nodes > 1) ++sharing[node];
    }
    worst.size = static_cast<std::int64_t>(members.size());
    worst.span = std::max(worst.span, on_node.rbegin()->first - on_node.begin()->first + 1);
    if (nodes > worst.nodes) worst.per_node = 0;
    if (nodes >= worst.nodes) worst.per_node = std::max(worst.per_node, most);
    worst.nodes = std::max(worst.nodes, nodes);
  }
  for (const auto& [node, count] : sharing)
    worst.groups_per_node = std::max(worst.groups_per_node, count);
  return worst;
}

GroupPlacement brute_force(Group group, const Plan& plan, std::int64_t domain) {
  std::vector<std::vector<std::int64_t>> members;
  for (const auto& [key, group_members] : shardwright::fixtures::enumerated_groups(group, plan))
    members.push_back(group_members);
  return placement_of_groups(members, domain);
}

// Pairs of ranks that differ in the pipeline coordinate alone.
GroupPlacement brute_force_pairs(const Plan& plan, std::int64_t domain, bool ends) {
  GroupPlacement worst;
  if (plan.pp == 1) return worst;
  const auto ranks = shardwright::fixtures::enumerate(plan);
  std::map<std::map<Axis, std::int64_t>, std::int64_t> rank_at;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    rank_at[ranks[rank].dense] = static_cast<std::int64_t>(rank);
  worst = {.size = 2, .per_node = 2};
  std::map<std::int64_t, std::int64_t> leaving;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    auto peer = ranks[rank].dense;
    const std::int64_t stage = peer[Axis::Pipeline];
    if (ends ? stage != 0 : stage == plan.pp - 1) continue;
    peer[Axis::Pipeline] = ends ? plan.pp - 1 : stage + 1;
    const std::int64_t node = static_cast<std::int64_t>(rank) / domain;
    const std::int64_t distance = rank_at[peer] / domain - node;
    if (distance == 0) continue;
    worst.per_node = 1;
    worst.nodes = 2;
    worst.span = std::max(worst.span, distance + 1);
    worst.groups_per_node = std::max(worst.groups_per_node, ++leaving[node]);
  }
  return worst;
}

Plan random_plan(bool powers_of_two) {
  const auto degree = [&] {
    return powers_of_two ? std::int64_t{1} << *rc::gen::inRange(0, 3)
                         : *rc::gen::inRange<std::int64_t>(1, 5);
  };
  Plan plan;
  plan.tp = degree();
  plan.cp = degree();
  plan.pp = degree();
  plan.dp = degree();
  plan.expert_tp = *rc::gen::element<std::int64_t>(1, plan.tp);
  const std::int64_t ranks = plan.tp * plan.cp * plan.dp / plan.expert_tp;
  plan.ep = *rc::gen::suchThat(rc::gen::inRange<std::int64_t>(1, ranks + 1),
                               [&](std::int64_t ep) { return ranks % ep == 0; });
  plan.shard_group = plan.cp * *rc::gen::element<std::int64_t>(1, plan.dp);
  return plan;
}

std::string describe(const GroupPlacement& p) {
  return "size " + std::to_string(p.size) + " per_node " + std::to_string(p.per_node) + " nodes " +
         std::to_string(p.nodes) + " groups_per_node " + std::to_string(p.groups_per_node) +
         " span " + std::to_string(p.span);
}

// The group's figures alone: how nodes lie below switches is tested by what the links carry
// (NodeLinks.CarryAllGroupsOfAKindAtOnce), and on a torus of the job's nodes in torus_path_test.
GroupPlacement figures_of(Group group, const Plan& plan, const ClusterSpec& cluster) {
  GroupPlacement placement = place(group, plan, cluster);
  placement.grid = {};
  placement.job_nodes = 0;
  return placement;
}

void expect_same_as_enumeration(const Plan& plan, std::int64_t domain) {
  const ClusterSpec cluster = cluster_with_domain(domain);
  for (const Group group :
       {Group::Tensor, Group::Context, Group::Data, Group::Expert, Group::ExpertTensor,
        Group::ExpertData, Group::ModelParallel, Group::ShardInner, Group::ShardOuter}) {
    const GroupPlacement expected = brute_force(group, plan, domain);
    const GroupPlacement found = figures_of(group, plan, cluster);
    RC_LOG() << "group " << static_cast<int>(group) << " tp " << plan.tp << " cp " << plan.cp
             << " dp " << plan.dp << " pp " << plan.pp << " ep " << plan.ep << " etp "
             << plan.expert_tp << " domain " << domain << "\nexpected " << describe(expected)
             << "\nfound " << describe(found) << "\n";
    RC_ASSERT(found == expected);
  }
  RC_ASSERT(figures_of(Group::Pipeline, plan, cluster) == brute_force_pairs(plan, domain, false));
  RC_ASSERT(figures_of(Group::EmbeddingTie, plan, cluster) ==
            brute_force_pairs(plan, domain, true));
}

RC_GTEST_PROP(Placement, EqualsEnumerationWhereDegreesArePowersOfTwo, ()) {
  expect_same_as_enumeration(random_plan(true), *rc::gen::element<std::int64_t>(1, 2, 4, 8, 16));
}

RC_GTEST_PROP(Placement, EqualsEnumerationForAnyDegrees, ()) {
  expect_same_as_enumeration(random_plan(false), *rc::gen::inRange<std::int64_t>(1, 9));
}

RC_GTEST_PROP(Placement, EqualsEnumerationForAnyNesting, ()) {
  Plan plan = random_plan(true);
  shuffle_axes(plan.rank_order);
  // The order of two nested axes matters to a shard group only if it cuts them.
  plan.shard_group = plan.cp * plan.dp;
  expect_same_as_enumeration(plan, *rc::gen::element<std::int64_t>(2, 4, 8));
}

// Llama 3.1 405B's nesting (arXiv 2407.21783, section 3.3.2): tensor parallelism fills a node, so
// that each data-parallel group has one member per node and eight of them share its NICs.
TEST(Placement, DataParallelGroupsOfFullNodesShareTheNics) {
  Plan plan;
  plan.tp = 8;
  plan.pp = 16;
  plan.dp = 128;
  const ClusterSpec cluster = cluster_with_domain(8);
  EXPECT_EQ(figures_of(Group::Tensor, plan, cluster), (GroupPlacement{.size = 8, .per_node = 8}));
  EXPECT_EQ(figures_of(Group::Data, plan, cluster),
            (GroupPlacement{
                .size = 128, .per_node = 1, .nodes = 128, .groups_per_node = 8, .span = 128}));
  EXPECT_EQ(place(Group::Pipeline, plan, cluster).span, 129);
  GroupLattice pipeline;
  pipeline.append(16, 128);
  EXPECT_EQ(place(Group::Pipeline, plan, cluster).grid, pipeline);
  EXPECT_EQ(place(Group::Data, plan, cluster).job_nodes, 2048);
}

GroupPlacement over(std::int64_t nodes) {
  GroupPlacement placement;
  placement.per_node = 8;
  placement.nodes = placement.span = nodes;
  placement.size = placement.per_node * nodes;
  return placement;
}

// The share of copies to other nodes that go where no earlier copy of the token went.
double drawn_share(int nodes, int copies, std::mt19937& random) {
  std::uniform_int_distribution<int> node(0, nodes - 1);
  std::size_t first = 0, remote = 0;
  for (int token = 0; token < 50'000; ++token) {
    std::set<int> hit;
    for (int copy = 0; copy < copies; ++copy) {
      const int to = node(random);
      if (to == 0) continue;
      ++remote;
      first += hit.insert(to).second ? 1 : 0;
    }
  }
  return static_cast<double>(first) / static_cast<double>(remote);
}

TEST(TokenCopies, ShareIsThatOfDrawnTokens) {
  std::mt19937 random(7);
  for (const int nodes : {2, 4, 8}) {
    for (const int copies : {2, 6, 8})
      EXPECT_NEAR(token_traffic(1, copies, 0, over(nodes)).remote,
                  drawn_share(nodes, copies, random), 0.01);
  }
}

// Ranks of a node, all of one group, are told apart as nodes are.
TEST(TokenCopies, EachRankGetsOne) {
  std::mt19937 random(7);
  for (const int ranks : {2, 8, 64}) {
    const GroupPlacement node{.size = ranks, .per_node = ranks, .nodes = 1};
    for (const int copies : {2, 6, 8})
      EXPECT_NEAR(token_traffic(1, copies, 0, node).local, drawn_share(ranks, copies, random),
                  0.01);
  }
}

TEST(TokenCopies, AllAreSentWhereTheStackSendsThem) {
  const TokenTraffic all = token_traffic(1, CommunicationWork{}.copies, 0, over(8));
  EXPECT_EQ(all.remote, 1.0);
  EXPECT_EQ(all.local, 1.0);
  EXPECT_EQ(token_traffic(1, 8, 0, over(1)).remote, 1.0);
}

// DeepSeek-V3: 8 experts on at most 4 nodes (arXiv 2412.19437, section 2.1.2).
TEST(TokenCopies, RoutersMayLimitTheNodes) {
  EXPECT_DOUBLE_EQ(token_traffic(1, 8, 4, over(8)).remote, 0.5);
  EXPECT_EQ(token_traffic(1, 8, 4, over(2)).remote, token_traffic(1, 8, 0, over(2)).remote);
  EXPECT_LT(token_traffic(1, 8, 4, over(8)).local, token_traffic(1, 8, 0, over(8)).local);
}

TEST(TokenCopies, FewerCopiesTakeLess) {
  const ClusterSpec cluster = load_cluster("dgx-h100");
  const auto time = [&](const TokenTraffic& tokens, std::int64_t nodes = 8) {
    return collective_time(OpKind::AllToAll, Bytes(256e6), over(nodes), cluster, StackSpec{},
                           tokens);
  };
  // Eight copies on eight nodes: most of the time is the network's.
  EXPECT_LT(time({1, 0.65, 0.99}), time({}) * 0.75);
  // Never below what a node's own links take to spread all copies.
  EXPECT_GT(time({1, 1e-3, 0.99}), Seconds(256e6 * 0.99 * 7.0 / 8.0 / 450e9));
  // Eight copies on the eight ranks of one node.
  EXPECT_NEAR(time(token_traffic(1, 8, 0, over(1)), 1) / time({}, 1), 0.656, 0.03);
}

}  // namespace

}  // namespace shardwright::sim
