#include "sim/step/full_replay.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "core/lowering/lowering.hpp"
#include "core/program/rank_grid.hpp"
#include "sim/cost/placement.hpp"
#include "sim/step/folded_replay.hpp"
#include "tests/sim/step/random_scenario.hpp"
#include "tests/thrown.hpp"

namespace shardwright::sim {
namespace {

using fixtures::any_small_scenario;
using fixtures::small_scenario;

struct Priced {
  Scenario scenario;
  Program program;
  Prices prices;

  explicit Priced(Scenario given)
      : scenario(std::move(given)),
        program(lower(scenario.model, scenario.plan, scenario.stack)),
        prices(price(program, scenario.cluster, scenario.stack)) {}

  FullReplay replay(const FullOptions& options = {}) const {
    return replay_full(program, scenario.cluster, prices, options);
  }
};

std::vector<std::int64_t> all_ranks(const Plan& plan) {
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(plan.world_size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// A step of so many microbatches, whose ops fill more memory than a replay may take.
std::vector<std::string> places_of_large_step(std::int64_t microbatches) {
  Program program;
  program.plan.global_batch = microbatches;
  program.stages.resize(1);
  program.stages[0].ops = 500'000'000;
  return problems_of([&] { check_replay_memory(program); });
}

TEST(FullReplay, ATooLargeStepNamesTheBatchWhereASmallerOneWouldDo) {
  EXPECT_EQ(places_of_large_step(1024), std::vector<std::string>{"/global_batch"});
  EXPECT_EQ(places_of_large_step(1), std::vector<std::string>{""});
}

// Parts of a step rest on durations of single precision.
void expect_same_part(Seconds found, Seconds expected, Seconds step) {
  RC_ASSERT(std::abs((found - expected).value()) <= 1e-7 * step.value());
}

void expect_near(Seconds found, Seconds expected, Seconds step) {
  RC_ASSERT(std::abs((found - expected).value()) <= 1e-9 * step.value());
}

void expect_same(const TimeBreakdown& found, const TimeBreakdown& expected, Seconds step) {
  expect_same_part(found.gemm, expected.gemm, step);
  expect_same_part(found.attention, expected.attention, step);
  expect_same_part(found.memory_bound, expected.memory_bound, step);
  expect_same_part(found.optimizer, expected.optimizer, step);
  expect_same_part(found.recompute, expected.recompute, step);
  expect_same_part(found.bubble, expected.bubble, step);
  expect_same_part(found.host, expected.host, step);
  expect_same_part(found.stall, Seconds(), step);
  for (std::size_t i = 0; i < expected.exposed.size(); ++i)
    expect_same_part(found.exposed[i], expected.exposed[i], step);
}

RC_GTEST_PROP(FullReplay, EqualsTheFoldedRunWhereAllRanksAreAlike, ()) {
  const Priced priced(any_small_scenario());
  const FoldedReplay folded = replay_folded(priced.program, priced.prices);
  FullOptions options;
  options.watched_ranks = all_ranks(priced.scenario.plan);
  const FullReplay full = priced.replay(options);
  RC_ASSERT(!folded.deadlocked);
  RC_ASSERT(!full.deadlocked);
  expect_near(full.step, folded.step, folded.step);
  const RankGrid grid(priced.scenario.plan);
  for (const WatchedRank& watched : full.watched) {
    const auto stage = static_cast<std::size_t>(grid.locate(watched.rank).stage);
    expect_same(watched.time, folded.time[stage], folded.step);
    const RankUse& use = full.ranks[static_cast<std::size_t>(watched.rank)];
    for (std::size_t stream = 0; stream < kStreams; ++stream)
      expect_near(use.busy[stream], folded.busy[stage][stream], folded.step);
  }
}

// 16 layers on 18 chunks, the first of which has the embedding alone, and the last one the head.
TEST(FullReplay, EqualsTheFoldedRunWhereTheEndsHoldNoLayer) {
  Scenario scenario = small_scenario(2, 2, 3);
  scenario.plan.vpp = 6;
  scenario.plan.schedule = ScheduleKind::Interleaved;
  scenario.plan.global_batch = 12;
  scenario.plan.embedding_counts_as_layer = scenario.plan.head_counts_as_layer = true;
  ASSERT_FALSE(first_broken_rule(scenario.model, scenario.cluster, scenario.plan));
  const Priced priced(scenario);
  const FoldedReplay folded = replay_folded(priced.program, priced.prices);
  EXPECT_FALSE(folded.deadlocked);
  EXPECT_NEAR(priced.replay().step / folded.step, 1.0, 1e-9);
}

RC_GTEST_PROP(FullReplay, ContentionNeverMakesAStepFaster, ()) {
  Priced priced(any_small_scenario(
      fixtures::one_of<std::string>({"dgx-h100", "a100-leaf-spine-2to1", "h100-pcie-server"})));
  FullOptions options;
  options.contention = true;
  const FullReplay shared = priced.replay(options);
  priced.prices = priced.prices.without_shared_nics();
  options.contention = false;
  const FullReplay alone = priced.replay(options);
  RC_ASSERT(!shared.deadlocked);
  RC_ASSERT(shared.step.value() >= alone.step.value() * (1.0 - 1e-9));
  if (shared.contention_delay.value() < 1e-12) expect_near(shared.step, alone.step, alone.step);
}

// Kinds of communication that cross nodes: group and stream.
std::set<std::pair<Group, Stream>> kinds_between_nodes(const Priced& priced) {
  std::set<std::pair<Group, Stream>> kinds;
  for (const Block& block : priced.program.blocks) {
    for (const Op& op : block.ops) {
      const auto* message = std::get_if<CommunicationWork>(&op.work);
      if (message == nullptr) continue;
      if (place(message->group, priced.scenario.plan, priced.scenario.cluster).nodes > 1)
        kinds.insert({message->group, op.stream});
    }
  }
  return kinds;
}

// Prices have all groups of a kind running at once, so only kinds that meet on the NICs can make
// the step longer than the event level's.
RC_GTEST_PROP(FullReplay, ContentionComesFromSeveralKindsBetweenNodesOnly, ()) {
  const Priced priced(any_small_scenario(fixtures::one_of<std::string>(
      {"dgx-h100", "a100-leaf-spine-2to1", "h100-pcie-server", "aws-p4d"})));
  FullOptions options;
  options.contention = true;
  const FullReplay full = priced.replay(options);
  RC_ASSERT(full.step.value() >= full.uniform_step.value() * (1.0 - 1e-9));
  if (kinds_between_nodes(priced).size() < 2) expect_near(full.step, full.uniform_step, full.step);
}

RC_GTEST_PROP(FullReplay, PartsOfAStragglingRankAddUpToTheStep, ()) {
  const Priced priced(any_small_scenario());
  FullOptions options;
  options.watched_ranks = all_ranks(priced.scenario.plan);
  options.variation.op_jitter = 0.2;
  options.contention = *rc::gen::arbitrary<bool>();
  const FullReplay full = priced.replay(options);
  for (const WatchedRank& watched : full.watched)
    expect_near(watched.time.total(), full.step, full.step);
}

RC_GTEST_PROP(FullReplay, SameSeedSameResult, ()) {
  const Priced priced(any_small_scenario());
  FullOptions options;
  options.variation.rank_jitter = 0.05;
  options.variation.op_jitter = 0.1;
  options.variation.seed = *rc::gen::arbitrary<std::uint64_t>();
  options.contention = true;
  RC_ASSERT(priced.replay(options).ranks == priced.replay(options).ranks);
}

// Uniform slowness of all kernels by f, where neither host nor network is in the way: the step
// takes between 1 and f times as long, and so it does if a single rank of a synchronous step is
// slow.
TEST(FullReplay, OneSlowRankHoldsUpAllOthers) {
  const Priced priced(small_scenario(4, 2, 1));
  FullOptions options;
  options.variation.rank_slowdown.assign(8, 1.0);
  options.variation.rank_slowdown[5] = 1.5;
  options.watched_ranks = {0, 5};
  const FullReplay one = priced.replay(options);
  options.variation.rank_slowdown.assign(8, 1.5);
  const FullReplay all = priced.replay(options);
  EXPECT_EQ(one.slowest, 5);
  EXPECT_GT(one.slowdown(), 0.3);
  EXPECT_LE(one.step, all.step);
  EXPECT_GT(one.step / all.step, 0.99);
  // The slow rank computes while the others wait for it.
  EXPECT_NEAR(one.watched[1].time.stall / one.step, 0.0, 0.02);
  EXPECT_GT(one.watched[0].time.stall / one.step, 0.2);
}

// A rank on one stage of a pipeline that has room (a bubble) does less harm than the same share of
// the whole step.
TEST(FullReplay, ASlowRankCostsAtMostItsOwnDelay) {
  const Priced priced(small_scenario(2, 2, 4));
  FullOptions options;
  options.variation.rank_slowdown.assign(16, 1.0);
  options.variation.rank_slowdown[0] = 1.2;
  const FullReplay full = priced.replay(options);
  const Seconds delay = full.ranks[0].compute() * (0.2 / 1.2);
  EXPECT_GT(full.step, full.uniform_step);
  EXPECT_LE(full.step, full.uniform_step + delay * (1.0 + 1e-9));
}

// The mean of the largest of n independent times grows with n.
TEST(FullReplay, JitterCostsMoreOnMoreRanks) {
  double previous = -1.0;
  for (const std::int64_t dp : {1, 4, 32}) {
    const Priced priced(small_scenario(dp, 1, 1));
    double slowdown = 0.0;
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      FullOptions options;
      options.variation.rank_jitter = 0.05;
      options.variation.seed = seed;
      slowdown += priced.replay(options).slowdown() / 12.0;
    }
    EXPECT_GT(slowdown, previous + 0.01) << dp;
    previous = slowdown;
  }
}

// Log-normal with mean 1: the sample mean of n factors is 1 within a few s / sqrt(n).
TEST(RankVariation, FactorsHaveMeanOne) {
  RankVariation variation;
  variation.op_jitter = 0.3;
  double sum = 0.0, squares = 0.0;
  constexpr int kSamples = 100'000;
  for (std::uint32_t op = 0; op < kSamples; ++op) {
    const double factor = op_factor(variation, 7, op);
    sum += factor / kSamples;
    squares += factor * factor / kSamples;
  }
  EXPECT_NEAR(sum, 1.0, 0.005);
  EXPECT_NEAR(squares - sum * sum, std::exp(0.3 * 0.3) - 1.0, 0.005);
}

// Replicas of two stages over two nodes: messages cross nodes, and data-parallel groups stay on
// one.
Scenario stages_on_nodes() {
  Scenario scenario = small_scenario(4, 2, 2);
  scenario.plan.zero_stage = 0;
  return scenario;
}

TEST(FullReplay, ASlowNicOnlySlowsWhatCrossesIt) {
  const Priced priced(stages_on_nodes());
  FullOptions options;
  options.slow_nics = {{0, 3, 0.01}};
  const FullReplay slow = priced.replay(options);
  EXPECT_GT(slow.step, slow.uniform_step);
  // Nothing crosses a NIC on a single node.
  const Priced local(small_scenario(4, 2, 1));
  const FullReplay same = local.replay(options);
  EXPECT_NEAR(same.step / same.uniform_step, 1.0, 1e-12);
}

// All of the traffic of a step crosses 8 NICs a node. With all at half the rate, messages of b
// bytes take 2 b / B; only one NIC at half can do no more harm.
TEST(FullReplay, MoreSlowNicsDoMoreHarm) {
  const Priced priced(stages_on_nodes());
  FullOptions one, all;
  one.slow_nics = {{1, 0, 0.1}};
  for (std::int64_t nic = 0; nic < 8; ++nic) all.slow_nics.push_back({1, nic, 0.1});
  const Seconds by_one = priced.replay(one).step, by_all = priced.replay(all).step;
  EXPECT_GT(by_one, priced.replay().step);
  EXPECT_GE(by_all, by_one);
}

// Pipeline messages and the reduction of gradients across the same NICs at the same time.
TEST(FullReplay, MessagesAndReductionsShareNics) {
  Scenario scenario = small_scenario(4, 4, 2);
  scenario.plan.rank_order = {Axis::Tensor, Axis::Data, Axis::Context, Axis::Expert,
                              Axis::Pipeline};
  scenario.plan.zero_stage = 3;
  scenario.stack.communication.collective_ratio = 1.0;  // reductions fill their NICs
  const Priced priced(scenario);
  FullOptions options;
  options.contention = true;
  const FullReplay shared = priced.replay(options);
  EXPECT_FALSE(shared.deadlocked);
  EXPECT_GT(shared.contention_delay, Seconds());
  EXPECT_GT(shared.step, shared.uniform_step);
}

// Tokens go to experts of other nodes while gradients are reduced. The event level shares the NICs
// between the collectives of one accelerator, the full level between all ranks.
TEST(FullReplay, ExchangesAndReductionsShareNicsInTheEventLevelToo) {
  Scenario scenario = small_scenario(16, 2, 1);
  scenario.model.moe = MoeSpec{};
  scenario.model.moe->experts = 16;
  scenario.model.moe->top_k = 4;
  scenario.model.moe->expert_ffn = 1024;
  scenario.plan.ep = 16;
  scenario.plan.global_batch = 16;
  scenario.stack.gradients.bucket_elements = 1e6;
  scenario.stack.gradients.bucket_elements_per_replica = 0.0;
  // Both kinds fill their NICs.
  scenario.stack.communication.collective_ratio = 1.0;
  scenario.stack.communication.all_to_all_ratio = 1.0;
  const Priced priced(scenario);
  FullOptions options;
  options.contention = true;
  const FullReplay full = priced.replay(options);
  const Seconds event = replay_folded(priced.program, priced.prices).step;
  const Seconds plain = full.uniform_step;
  EXPECT_GT(event / plain, 1.01);
  EXPECT_GT(full.step / plain, 1.01);
  EXPECT_LT(std::abs((event - full.step).value()), (full.step - plain).value());
}

// The first chunk holds the embedding alone, the last one the head alone.
TEST(FullReplay, RunsChunksWithoutLayers) {
  Scenario scenario = small_scenario(1, 1, 2);
  for (const std::int64_t first : {0, 16}) {
    scenario.plan.stage_layers = {first, 16 - first};
    const FullReplay replay = Priced(scenario).replay();
    EXPECT_FALSE(replay.deadlocked);
    EXPECT_NEAR(replay.step / replay.uniform_step, 1.0, 1e-9);
  }
}

TEST(FullReplay, StopsWhenAsked) {
  const Priced priced(small_scenario(64, 2, 4));
  std::stop_source source;
  FullOptions options;
  options.stop = source.get_token();
  double last = 0.0;
  options.progress = [&](double share) {
    EXPECT_GE(share, last);
    EXPECT_LE(share, 1.0);
    last = share;
    source.request_stop();
  };
  const FullReplay stopped = priced.replay(options);
  EXPECT_TRUE(stopped.cancelled);
  EXPECT_FALSE(stopped.deadlocked);
  EXPECT_LT(stopped.ops, priced.replay().ops);
}

TEST(FullReplay, NamesOptionsThatDoNotFit) {
  const Priced priced(small_scenario(2, 2, 2));
  FullOptions nics;
  nics.slow_nics = {{0, 8, 0.5}, {1, 0, 0.5}, {0, 0, 0.0}};
  EXPECT_EQ(problems_of([&] { priced.replay(nics); }).size(), 3u);
  FullOptions ranks, factors, jitter;
  ranks.watched_ranks = {8};
  factors.variation.rank_slowdown = {1.0, 2.0};
  jitter.variation.op_jitter = std::nan("");
  EXPECT_THROW(priced.replay(ranks), InputError);
  EXPECT_THROW(priced.replay(factors), InputError);
  EXPECT_THROW(priced.replay(jitter), InputError);
}

}  // namespace
}  // namespace shardwright::sim
