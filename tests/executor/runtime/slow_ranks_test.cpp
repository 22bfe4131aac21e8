#include "executor/runtime/slow_ranks.hpp"

#include <gtest/gtest.h>

#include "core/lowering/lowering.hpp"
#include "core/spec/profile_library.hpp"
#include "tests/executor/runtime/training_fixture.hpp"

namespace shardwright::executor {
namespace {

constexpr std::size_t kSettling = 2;

// Ranks that do the same work.
std::vector<RankWork> peers(std::size_t count) {
  return std::vector<RankWork>(count, RankWork{2.0, 0});
}

// Stages of a pipeline without replicas.
std::vector<RankWork> stages() {
  return {{2.0, 0}, {3.0, 1}, {2.0, 2}};
}

void add(SlowRankWatch& watch, const std::vector<double>& seconds, std::size_t steps) {
  for (std::size_t i = 0; i < steps; ++i) watch.add(seconds);
}

TEST(SlowRanks, AreThoseThatStayAboveTheMedianOfTheirPeers) {
  SlowRankWatch watch(peers(4), {});
  add(watch, {1.0, 1.1, 0.9, 1.0}, kSettling + SlowRankWatch::kSteps);
  EXPECT_FALSE(watch.changed());
  add(watch, {1.0, 1.1, 2.0, 1.0}, SlowRankWatch::kSteps - 2);
  EXPECT_FALSE(watch.changed());
  add(watch, {1.0, 1.1, 2.0, 1.0}, 1);
  EXPECT_EQ(watch.changed(), (std::vector<double>{1.0, 1.0, 2.0, 1.0}));
  ASSERT_TRUE(watch.slowest());
  EXPECT_EQ(watch.slowest()->rank, 2);
  EXPECT_EQ(watch.slowest()->slowdown, 2.0);
}

// Single steps and a machine on which all ranks slow down say nothing about a rank.
TEST(SlowRanks, AreNotThoseOfOneSlowStep) {
  SlowRankWatch watch(peers(2), {});
  for (int round = 0; round < 20; ++round) {
    add(watch, {1.0, 1.0}, 3);
    add(watch, {1.0, 50.0}, 1);
    EXPECT_FALSE(watch.changed());
  }
  add(watch, {5.0, 5.5}, 2 * SlowRankWatch::kSteps);
  EXPECT_FALSE(watch.changed());
}

TEST(SlowRanks, AreFoundAmongTwo) {
  SlowRankWatch watch(peers(2), {});
  add(watch, {3.0, 1.0}, kSettling + SlowRankWatch::kSteps);
  EXPECT_EQ(watch.changed(), (std::vector<double>{3.0, 1.0}));
}

// Less work is less time: the rank with a third of the work that takes as long as the other one is
// as slow as before. Once it is fast again, it is so by the same rule.
TEST(SlowRanks, AreExpectedToBeAsSlowAsThePlanTakesThemToBe) {
  SlowRankWatch watch({{9.0, 0}, {3.0, 0}}, {1.0, 3.0});
  add(watch, {1.0, 1.0}, kSettling + 2 * SlowRankWatch::kSteps);
  EXPECT_FALSE(watch.changed());
  add(watch, {1.0, 0.33}, SlowRankWatch::kSteps);
  EXPECT_EQ(watch.changed(), (std::vector<double>{1.0, 1.0}));
  watch.expect({1.0, 1.0});
  add(watch, {1.0, 0.33}, 2 * SlowRankWatch::kSteps);
  EXPECT_FALSE(watch.changed());
}

// A rank of which little is left of its slowness gets all of its work back. Should it then be found
// to be slower than others, it is so for good: the plan does not change to and fro.
TEST(SlowRanks, AreFastAgainBelowALimit) {
  SlowRankWatch watch(peers(2), {1.0, 4.0});
  add(watch, {1.0, 1.4}, kSettling + SlowRankWatch::kSteps);
  EXPECT_EQ(watch.changed(), (std::vector<double>{1.0, 1.0}));
  watch.expect({1.0, 1.0});
  add(watch, {1.0, 1.4}, SlowRankWatch::kSteps);
  EXPECT_EQ(watch.changed(), (std::vector<double>{1.0, 1.4}));
  watch.expect({1.0, 1.4});
  add(watch, {1.0, 1.4}, 3 * SlowRankWatch::kSteps);
  EXPECT_FALSE(watch.changed());
}

// Stages differ in more than FLOP, so each is compared with its own first steps.
TEST(SlowRanks, WithoutPeersAreComparedWithTheirFirstSteps) {
  SlowRankWatch watch(stages(), {});
  add(watch, {1.0, 1.0, 4.0}, kSettling + 2 * SlowRankWatch::kSteps);
  EXPECT_FALSE(watch.changed());
  add(watch, {1.0, 2.5, 4.0}, SlowRankWatch::kSteps);
  ASSERT_TRUE(watch.changed());
  EXPECT_DOUBLE_EQ((*watch.changed())[1], 2.5);
  EXPECT_EQ((*watch.changed())[0], 1.0);
  EXPECT_EQ((*watch.changed())[2], 1.0);
}

// The first steps of a plan that was made for slow ranks are those of slow ranks.
TEST(SlowRanks, WithoutPeersMayBecomeFastAgain) {
  SlowRankWatch watch(stages(), {1.0, 2.0, 1.0});
  add(watch, {1.0, 1.0, 4.0}, kSettling + 2 * SlowRankWatch::kSteps);
  EXPECT_FALSE(watch.changed());
  add(watch, {1.0, 0.5, 4.0}, SlowRankWatch::kSteps);
  EXPECT_EQ(watch.changed(), (std::vector<double>{1.0, 1.0, 1.0}));
}

// Replicas with unequal shares are peers, and their work is in proportion to their microbatches.
TEST(WorkOfRanks, IsInProportionToMicrobatches) {
  Plan plan = one_rank_plan();
  plan.dp = plan.pp = 2;
  plan.rank_order = {Axis::Tensor, Axis::Context, Axis::Expert, Axis::Pipeline, Axis::Data};
  plan.micro_batch = 1;
  plan.global_batch = 8;
  plan.replica_pools = {{"fast", 1, 6}, {"slow", 1, 2}};
  const std::vector<RankWork> work =
      work_of_ranks(lower(small_llama(), plan, load_stack("shardwright")));
  ASSERT_EQ(work.size(), 4U);
  EXPECT_EQ(work[0].peers, work[2].peers);
  EXPECT_EQ(work[1].peers, work[3].peers);
  EXPECT_NE(work[0].peers, work[1].peers);
  EXPECT_DOUBLE_EQ(work[0].flop, 3.0 * work[2].flop);
  EXPECT_DOUBLE_EQ(work[1].flop, 3.0 * work[3].flop);
}

}  // namespace
}  // namespace shardwright::executor
