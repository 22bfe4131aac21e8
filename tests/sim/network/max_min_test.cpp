#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/sim/network/scenarios.hpp"

namespace shardwright::sim {
namespace {

using fixtures::Random;

std::vector<double> loads(const MaxMinProblem& problem, const std::vector<BytesPerSecond>& rates) {
  std::vector<double> load(problem.capacities.size(), 0.0);
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const MaxMinFlow& flow = problem.flows[i];
    for (std::size_t hop = 0; hop < flow.route.size(); ++hop) {
      const double weight = flow.weights.empty() ? 1.0 : flow.weights[hop];
      load[flow.route[hop]] += weight * rates[i].value();
    }
  }
  return load;
}

bool crosses(const MaxMinFlow& flow, LinkIndex link) {
  return std::ranges::find(flow.route, link) != flow.route.end();
}

bool is_bottleneck(const MaxMinProblem& problem, const std::vector<BytesPerSecond>& rates,
                   const std::vector<double>& load, LinkIndex link, std::size_t flow) {
  if (load[link] < problem.capacities[link].value() * (1.0 - 1e-9)) return false;
  for (std::size_t other = 0; other < rates.size(); ++other) {
    if (crosses(problem.flows[other], link) && rates[other] > rates[flow] * (1.0 + 1e-9))
      return false;
  }
  return true;
}

// x1 + x2 <= 10  =>  5, 5
TEST(MaxMin, TwoFlowsShareOneLinkEqually) {
  const auto rates = max_min_rates({{BytesPerSecond(10.0)}, {{{0}, {}}, {{0}, {}}}});
  EXPECT_DOUBLE_EQ(rates[0].value(), 5.0);
  EXPECT_DOUBLE_EQ(rates[1].value(), 5.0);
}

// The example of Bertsekas and Gallager's kind: a chain of links of 1, a flow over all of them, one
// flow on the first, two on the second: x_long = 1/3, x_1 = 2/3, x_2 = x_3 = 1/3.
TEST(MaxMin, LongFlowIsHeldByItsMostCrowdedLinkAndLeavesTheRest) {
  const BytesPerSecond one(1.0);
  const auto rates = max_min_rates({{one, one}, {{{0, 1}, {}}, {{0}, {}}, {{1}, {}}, {{1}, {}}}});
  EXPECT_DOUBLE_EQ(rates[0].value(), 1.0 / 3.0);
  EXPECT_DOUBLE_EQ(rates[1].value(), 2.0 / 3.0);
  EXPECT_DOUBLE_EQ(rates[2].value(), 1.0 / 3.0);
  EXPECT_DOUBLE_EQ(rates[3].value(), 1.0 / 3.0);
}

// 2 x1 + x2 <= 9 with x1 = x2  =>  3, 3
TEST(MaxMin, WeightIsWhatARateTakesFromTheLink) {
  const auto rates = max_min_rates({{BytesPerSecond(9.0)}, {{{0}, {2.0}}, {{0}, {1.0}}}});
  EXPECT_DOUBLE_EQ(rates[0].value(), 3.0);
  EXPECT_DOUBLE_EQ(rates[1].value(), 3.0);
}

TEST(MaxMin, CappedFlowLeavesItsShareToTheOthers) {
  const auto rates =
      max_min_rates({{BytesPerSecond(10.0)}, {{{0}, {}, BytesPerSecond(2.0)}, {{0}, {}}}});
  EXPECT_DOUBLE_EQ(rates[0].value(), 2.0);
  EXPECT_DOUBLE_EQ(rates[1].value(), 8.0);
}

TEST(MaxMin, RandomProblemsMeetTheConditionsOfMaxMinFairness) {
  EXPECT_TRUE(rc::check("feasible, and each flow has a bottleneck", [](std::uint32_t seed,
                                                                       bool weighted) {
    Random random(seed);
    const auto problem = fixtures::random_problem(random, 12, 25, weighted);
    const auto rates = max_min_rates(problem);
    const auto load = loads(problem, rates);
    for (std::size_t link = 0; link < load.size(); ++link)
      RC_ASSERT(load[link] <= problem.capacities[link].value() * (1.0 + 1e-12));
    for (std::size_t i = 0; i < rates.size(); ++i) {
      const MaxMinFlow& flow = problem.flows[i];
      RC_ASSERT(rates[i].value() > 0.0);
      RC_ASSERT(rates[i] <= flow.rate_cap);
      RC_ASSERT(rates[i] == flow.rate_cap || std::ranges::any_of(flow.route, [&](LinkIndex link) {
                  return is_bottleneck(problem, rates, load, link, i);
                }));
    }
  }));
}

}  // namespace
}  // namespace shardwright::sim
