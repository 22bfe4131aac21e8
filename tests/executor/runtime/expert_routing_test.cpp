// Laws of the ways of rows: each choice has one row, rows are together by expert, and what is sent
// is received.
#include "executor/runtime/expert_routing.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "executor/data/hash.hpp"

namespace shardwright::executor {
namespace {

constexpr std::int64_t kTokensOfARank = 12;

MoeSpec six_experts(double capacity_factor = 0.0) {
  MoeSpec moe;
  moe.experts = 6;
  moe.top_k = 2;
  moe.capacity_factor = capacity_factor;
  return moe;
}

// Two experts of each token, as a rank chooses them; most choose the first expert.
ExpertRouting chosen_by(std::uint64_t rank) {
  ExpertRouting routing;
  for (std::uint64_t token = 0; token < kTokensOfARank; ++token) {
    const auto first = static_cast<std::int32_t>(random_bits(rank, token) % 3 == 0 ? 3 : 0);
    routing.chosen.push_back(first);
    routing.chosen.push_back(first + 1 + static_cast<std::int32_t>(random_bits(rank, token) % 2));
  }
  return routing;
}

TEST(ExpertRouting, SendsEachChoiceInTheOrderOfExperts) {
  ExpertRouting routing = chosen_by(1);
  lay_out_rows(six_experts(), {}, routing);
  EXPECT_EQ(routing.rows_sent(), 2 * kTokensOfARank);
  std::int32_t before = 0;
  for (std::size_t row = 0; row < routing.choice_of.size(); ++row) {
    const auto choice = static_cast<std::size_t>(routing.choice_of[row]);
    EXPECT_GE(routing.chosen[choice], before);
    before = routing.chosen[choice];
    EXPECT_EQ(routing.row_of[choice], static_cast<std::int32_t>(row));
    EXPECT_EQ(routing.token_of[row], static_cast<std::int32_t>(choice / 2));
  }
}

// An expert that may take five of 24 rows (1.25 times its even share of four) keeps the five tokens
// in which it has the largest share.
TEST(ExpertRouting, DropsTheSmallestSharesBeyondTheCapacity) {
  const MoeSpec moe = six_experts(1.25);
  ASSERT_EQ(expert_capacity(moe, kTokensOfARank), 5);
  ExpertRouting routing = chosen_by(1);
  std::vector<double> shares;
  for (std::uint64_t i = 0; i < 2 * kTokensOfARank; ++i) shares.push_back(random_unit(7, i));
  lay_out_rows(moe, shares, routing);
  EXPECT_EQ(*std::max_element(routing.sent.begin(), routing.sent.end()), 5);
  EXPECT_LT(routing.rows_sent(), 2 * kTokensOfARank);
  for (std::size_t kept = 0; kept < shares.size(); ++kept) {
    for (std::size_t dropped = 0; dropped < shares.size(); ++dropped) {
      if (routing.chosen[kept] == routing.chosen[dropped] && routing.row_of[kept] >= 0 &&
          routing.row_of[dropped] < 0) {
        EXPECT_GE(shares[kept], shares[dropped]);
      }
    }
  }
}

TEST(ExpertRouting, BringsWhatAllRanksSentTogetherByExpert) {
  constexpr std::size_t kRanks = 3, kEach = 2;
  std::vector<ExpertRouting> sent;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    sent.push_back(chosen_by(rank));
    lay_out_rows(six_experts(), {}, sent.back());
  }
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    // The experts of the rows in the order of arrival.
    std::vector<std::size_t> experts;
    ExpertRouting routing;
    for (const ExpertRouting& from : sent) {
      for (std::size_t expert = 0; expert < kEach; ++expert) {
        const std::int64_t rows = from.sent[rank * kEach + expert];
        routing.gathered.push_back(rows);
        experts.insert(experts.end(), static_cast<std::size_t>(rows), expert);
      }
    }
    lay_out_gathered(kEach, routing);
    EXPECT_LE(routing.rows_gathered(), most_rows(six_experts(), kTokensOfARank, kRanks, kEach));
    ASSERT_EQ(routing.arrived_at.size(), experts.size());
    std::vector<std::size_t> sorted;
    for (std::size_t row = 0; row < experts.size(); ++row) {
      const auto arrival = static_cast<std::size_t>(routing.arrived_at[row]);
      EXPECT_EQ(routing.sorted_at[arrival], static_cast<std::int32_t>(row));
      sorted.push_back(experts[arrival]);
    }
    EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end()));
    EXPECT_EQ(routing.rows[0], std::count(sorted.begin(), sorted.end(), 0U));
  }
}

// A token goes to an expert once, so two experts get at most two rows of each token, and the one
// expert of a rank among six one.
TEST(ExpertRouting, BoundsTheRowsOfARank) {
  EXPECT_EQ(most_rows(six_experts(), kTokensOfARank, 1, 6), 2 * kTokensOfARank);
  EXPECT_EQ(most_rows(six_experts(), kTokensOfARank, 3, 2), 3 * 2 * kTokensOfARank);
  EXPECT_EQ(most_rows(six_experts(), kTokensOfARank, 6, 1), 6 * kTokensOfARank);
  EXPECT_EQ(most_rows(six_experts(1.0), kTokensOfARank, 6, 1), 6 * 4);
}

}  // namespace
}  // namespace shardwright::executor
