#include "sim/network/flow_network.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/sim/network/random_network.hpp"

namespace shardwright::sim {
namespace {

using testing::any_below;
using testing::Random;

// The same flows for the reference: one MaxMinFlow for each flow of each path.
struct Mirror {
  MaxMinProblem problem;
  std::vector<PathIndex> path_of_flow;
};

Mirror mirrored(const FlowNetwork& network, const MaxMinProblem& paths) {
  Mirror mirror{{paths.capacities, {}}, {}};
  for (PathIndex path = 0; path < network.path_count(); ++path) {
    for (std::uint32_t i = 0; i < network.flows(path); ++i) {
      mirror.problem.flows.push_back(paths.flows[path]);
      mirror.path_of_flow.push_back(path);
    }
  }
  return mirror;
}

void expect_reference_rates(const FlowNetwork& network, const MaxMinProblem& paths) {
  const Mirror mirror = mirrored(network, paths);
  const auto rates = max_min_rates(mirror.problem);
  std::vector<double> load(paths.capacities.size(), 0.0);
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const double found = network.rate(mirror.path_of_flow[i]).value();
    RC_ASSERT(std::abs(found - rates[i].value()) <= 1e-9 * rates[i].value());
    for (const LinkIndex link : mirror.problem.flows[i].route) load[link] += found;
  }
  for (std::size_t link = 0; link < load.size(); ++link) {
    RC_ASSERT(load[link] <= paths.capacities[link].value() * (1.0 + 1e-9));
    RC_ASSERT(std::abs(load[link] - network.load(static_cast<LinkIndex>(link)).value()) <=
              1e-9 * paths.capacities[link].value());
  }
}

FlowNetwork network_of(const MaxMinProblem& paths) {
  FlowNetwork network(paths.capacities);
  for (const MaxMinFlow& flow : paths.flows) network.add_path(flow.route, flow.rate_cap);
  return network;
}

void change_at_random(FlowNetwork& network, Random& random) {
  const auto path = static_cast<PathIndex>(any_below(random, network.path_count()));
  if (network.flows(path) > 0 && any_below(random, 2) == 0) {
    network.remove_flows(path,
                         1 + static_cast<std::uint32_t>(any_below(random, network.flows(path))));
  } else {
    network.add_flows(path, 1 + static_cast<std::uint32_t>(any_below(random, 3)));
  }
}

TEST(FlowNetwork, RatesEqualTheReferenceAfterEveryChange) {
  EXPECT_TRUE(rc::check("incremental = pure", [](std::uint32_t seed) {
    Random random(seed);
    const auto paths = testing::random_problem(random, 20, 30, false);
    FlowNetwork network = network_of(paths);
    for (int step = 0; step < 40; ++step) {
      for (std::size_t changes = 1 + any_below(random, 4); changes > 0; --changes)
        change_at_random(network, random);
      network.resolve();
      expect_reference_rates(network, paths);
    }
  }));
}

TEST(FlowNetwork, ResolveNamesExactlyThePathsWhoseRateChanged) {
  EXPECT_TRUE(rc::check("changes are reported", [](std::uint32_t seed) {
    Random random(seed);
    FlowNetwork network = network_of(testing::random_problem(random, 10, 15, false));
    std::vector<double> known(network.path_count(), 0.0);
    for (int step = 0; step < 40; ++step) {
      change_at_random(network, random);
      for (const PathIndex path : network.resolve()) {
        RC_ASSERT(known[path] != network.rate(path).value());
        known[path] = network.rate(path).value();
      }
      for (PathIndex path = 0; path < known.size(); ++path) {
        if (network.flows(path) == 0) known[path] = 0.0;
        RC_ASSERT(known[path] == network.rate(path).value());
      }
    }
  }));
}

TEST(FlowNetwork, ChangeLeavesOtherComponentsUntouched) {
  const BytesPerSecond ten(10.0);
  FlowNetwork network({ten, ten});
  const std::vector<LinkIndex> first{0}, second{1};
  const PathIndex a = network.add_path(first), b = network.add_path(second);
  network.add_flows(a);
  network.add_flows(b);
  network.resolve();
  network.add_flows(a);
  const auto changed = network.resolve();
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed[0], a);
  EXPECT_DOUBLE_EQ(network.rate(a).value(), 5.0);
  EXPECT_DOUBLE_EQ(network.rate(b).value(), 10.0);
}

TEST(FlowNetwork, CapWithoutLinksIsTheRate) {
  FlowNetwork network({});
  const PathIndex path = network.add_path({}, BytesPerSecond(3.0));
  network.add_flows(path, 2);
  network.resolve();
  EXPECT_DOUBLE_EQ(network.rate(path).value(), 3.0);
}

}  // namespace
}  // namespace shardwright::sim
