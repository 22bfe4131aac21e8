#include "sim/step/fidelity.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "core/base/error.hpp"
#include "core/program/rank_grid.hpp"
#include "tests/sim/step/random_scenario.hpp"

namespace shardwright::sim {
namespace {

using fixtures::any_small_scenario;
using fixtures::small_scenario;

SimulatedStep on_ranks_of_random_speed(const Scenario& scenario) {
  FullOptions options;
  options.variation.rank_jitter = 0.1;
  options.variation.seed = *rc::gen::arbitrary<std::uint64_t>();
  return simulate_at(scenario, Fidelity::Full, options);
}

RC_GTEST_PROP(SimulateAt, TheFullLevelsBreakdownAddsUpToItsStep, ()) {
  const Scenario scenario = any_small_scenario();
  const SimulatedStep simulated = on_ranks_of_random_speed(scenario);
  RC_ASSERT(simulated.full.has_value());
  RC_ASSERT(simulated.result.step == simulated.full->step);
  for (const StageResult& stage : simulated.result.stages) {
    RC_ASSERT(std::abs(stage.time.total() / simulated.result.step - 1.0) < 1e-6);
    for (const StreamUse& use : stage.streams)
      RC_ASSERT(std::abs((use.busy + use.idle) / simulated.result.step - 1.0) < 1e-9);
  }
}

// A rank of each stage is reported: none of the stage computes longer.
RC_GTEST_PROP(SimulateAt, TheFullLevelReportsTheSlowestRankOfEachStage, ()) {
  const Scenario scenario = any_small_scenario();
  const SimulatedStep simulated = on_ranks_of_random_speed(scenario);
  const RankGrid grid(scenario.plan);
  for (std::size_t rank = 0; rank < simulated.full->ranks.size(); ++rank) {
    const auto stage = static_cast<std::size_t>(grid.locate(static_cast<std::int64_t>(rank)).stage);
    const auto slowest = static_cast<std::size_t>(simulated.full->watched[stage].rank);
    RC_ASSERT(grid.locate(static_cast<std::int64_t>(slowest)).stage ==
              static_cast<std::int64_t>(stage));
    RC_ASSERT(simulated.full->ranks[rank].compute() <=
              simulated.full->ranks[slowest].compute() * (1.0 + 1e-9));
  }
}

TEST(SimulateAt, ASlowRanksTimeIsTheOthersStall) {
  FullOptions options;
  options.variation.rank_slowdown = {1.0, 1.25};
  options.watched_ranks = {0, 1};
  const SimulatedStep simulated = simulate_at(small_scenario(2, 1, 1), Fidelity::Full, options);
  ASSERT_EQ(simulated.full->watched.size(), 2U) << "rank 1 stands for its stage and was asked for";
  const TimeBreakdown& slow = simulated.full->watched[0].time;
  const TimeBreakdown& fast = simulated.full->watched[1].time;
  EXPECT_EQ(simulated.full->watched[0].rank, 1);
  EXPECT_EQ(simulated.full->slowest, 1);
  EXPECT_NEAR(slow.compute() / fast.compute(), 1.25, 1e-9);
  EXPECT_EQ(slow.stall, Seconds());
  const Seconds longer = slow.compute() + slow.optimizer + slow.interference - fast.compute() -
                         fast.optimizer - fast.interference;
  EXPECT_NEAR(fast.stall / longer, 1.0, 0.02);
  EXPECT_GT(simulated.result.step, simulated.event_step * 1.1);
}

// The partners of the slow rank are followed of stages whose ranks are all alike, so that a trace
// has both ends of their messages.
TEST(SimulateAt, FollowsThePipelineOfTheSlowRank) {
  const Scenario scenario = small_scenario(2, 1, 4);
  FullOptions options;
  options.variation.rank_slowdown.assign(8, 1.0);
  options.variation.rank_slowdown[5] = 1.25;
  const SimulatedStep simulated = simulate_at(scenario, Fidelity::Full, options);
  std::vector<std::int64_t> followed;
  for (const WatchedRank& watched : simulated.full->watched) followed.push_back(watched.rank);
  EXPECT_EQ(followed, (std::vector<std::int64_t>{1, 3, 5, 7}));
}

TEST(SimulateAt, RefusesWhatIsNotThere) {
  FullOptions options;
  options.variation.rank_slowdown = {1.0};
  EXPECT_THROW(simulate_at(small_scenario(2, 1, 1), Fidelity::Full, options), InputError);
  options.variation.rank_slowdown.clear();
  options.watched_ranks = {2};
  EXPECT_THROW(simulate_at(small_scenario(2, 1, 1), Fidelity::Full, options), InputError);
}

}  // namespace
}  // namespace shardwright::sim
