#include "sim/cost/token_copies.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <set>

#include "core/spec/profile_library.hpp"
#include "sim/cost/collective_cost.hpp"

namespace shardwright::sim {
namespace {

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
      EXPECT_NEAR(remote_share(copies, 0, over(nodes)), drawn_share(nodes, copies, random), 0.01);
  }
}

TEST(TokenCopies, AllCopiesCrossWhereTheStackSendsThemOrOneNodeHoldsTheGroup) {
  EXPECT_EQ(remote_share(CommunicationWork{}.copies, 0, over(8)), 1.0);
  EXPECT_EQ(remote_share(8, 0, over(1)), 1.0);
}

// DeepSeek-V3: 8 experts on at most 4 nodes (arXiv 2412.19437, section 2.1.2).
TEST(TokenCopies, RoutersMayLimitTheNodes) {
  EXPECT_DOUBLE_EQ(remote_share(8, 4, over(8)), 0.5);
  EXPECT_EQ(remote_share(8, 4, over(2)), remote_share(8, 0, over(2)));
}

TEST(TokenCopies, FewerCopiesAcrossTheNetworkTakeLess) {
  const ClusterSpec cluster = load_cluster("dgx-h100");
  const auto time = [&](double share) {
    return collective_time(OpKind::AllToAll, Bytes(256e6), over(8), cluster, StackSpec{}, share);
  };
  // Eight copies on eight nodes: most of the time is the network's.
  EXPECT_LT(time(0.65), time(1.0) * 0.75);
  // Never below what a node's own links take to spread all copies.
  EXPECT_GT(time(1e-3), Seconds(256e6 * 7.0 / 8.0 / 450e9));
}

}  // namespace
}  // namespace shardwright::sim
