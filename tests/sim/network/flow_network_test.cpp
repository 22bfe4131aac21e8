#include "sim/network/flow_network.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/sim/network/scenarios.hpp"

namespace shardwright::sim {
namespace {

using fixtures::any_below;
using fixtures::Fabric;
using fixtures::Random;

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

RC_GTEST_PROP(FlowNetwork, RatesEqualTheReferenceAfterEveryChange, (std::uint32_t seed)) {
  Random random(seed);
  const auto paths = fixtures::random_problem(random, 20, 30, false);
  FlowNetwork network = network_of(paths);
  for (int step = 0; step < 40; ++step) {
    for (std::size_t changes = 1 + any_below(random, 4); changes > 0; --changes)
      change_at_random(network, random);
    network.resolve();
    expect_reference_rates(network, paths);
  }
}

Fabric any_fabric(Random& random) {
  switch (any_below(random, 3)) {
    case 0:
      return Fabric::star(7);
    case 1:
      return Fabric::leaf_spine(3, 3, 2, 3.0);
    default:
      return Fabric::fat_tree(4);
  }
}

// The routes between all pairs of hosts, over links of the fabric's rates or of any.
MaxMinProblem all_pairs(const Fabric& fabric, bool same_rates, Random& random) {
  MaxMinProblem problem;
  for (const ScenarioLink& link : fabric.links().links())
    problem.capacities.push_back(link.bandwidth);
  if (!same_rates)
    problem.capacities = fixtures::random_capacities(random, problem.capacities.size());
  for (std::uint32_t from = 0; from < fabric.hosts(); ++from) {
    for (std::uint32_t to = 0; to < fabric.hosts(); ++to) {
      if (from != to) problem.flows.push_back({fabric.route({from, to}), {}});
    }
  }
  return problem;
}

// Two networks that share no link, as one.
MaxMinProblem side_by_side(MaxMinProblem first, const MaxMinProblem& second) {
  const auto links = static_cast<LinkIndex>(first.capacities.size());
  first.capacities.insert(first.capacities.end(), second.capacities.begin(),
                          second.capacities.end());
  for (MaxMinFlow flow : second.flows) {
    for (LinkIndex& link : flow.route) link += links;
    first.flows.push_back(std::move(flow));
  }
  return first;
}

void cap_some(MaxMinProblem& problem, Random& random) {
  for (MaxMinFlow& flow : problem.flows) {
    const double share = problem.capacities[flow.route.front()].value() / 10.0;
    if (any_below(random, 4) == 0)
      flow.rate_cap = BytesPerSecond(std::uniform_real_distribution(0.2, 2.0)(random) * share);
  }
}

// A change moves nearly all rates where flows run between all hosts: the way of solving that sparse
// networks never take.
RC_GTEST_PROP(FlowNetwork, RatesOfADenseNetworkEqualTheReferenceAfterEveryChange,
              (std::uint32_t seed)) {
  Random random(seed);
  MaxMinProblem paths = all_pairs(any_fabric(random), any_below(random, 2) == 0, random);
  if (any_below(random, 3) == 0)
    paths = side_by_side(std::move(paths), all_pairs(Fabric::star(5), true, random));
  if (any_below(random, 3) == 0) cap_some(paths, random);
  FlowNetwork network = network_of(paths);
  for (PathIndex path = 0; path < network.path_count(); ++path)
    network.add_flows(path, static_cast<std::uint32_t>(any_below(random, 3)));
  for (int step = 0; step < 40; ++step) {
    network.resolve();
    expect_reference_rates(network, paths);
    for (std::size_t changes = 1 + any_below(random, 3); changes > 0; --changes)
      change_at_random(network, random);
  }
}

// Rates follow from moved_paths() and changed_levels().
RC_GTEST_PROP(FlowNetwork, ResolveReportsEveryChangeOfBottlenecksAndLevels, (std::uint32_t seed)) {
  Random random(seed);
  const MaxMinProblem paths = all_pairs(any_fabric(random), any_below(random, 2) == 0, random);
  FlowNetwork network = network_of(paths);
  std::vector<LinkIndex> bottleneck(network.path_count(), FlowNetwork::kNone);
  std::vector<double> level(paths.capacities.size(), 0.0);
  for (int step = 0; step < 100; ++step) {
    change_at_random(network, random);
    network.resolve();
    for (const PathIndex path : network.moved_paths()) bottleneck[path] = network.bottleneck(path);
    for (const LinkIndex link : network.changed_levels()) level[link] = network.level(link).value();
    for (PathIndex path = 0; path < network.path_count(); ++path) {
      if (network.flows(path) == 0) continue;
      const double rate = network.rate(path).value();
      RC_ASSERT(std::abs(level[bottleneck[path]] - rate) <= 1e-10 * rate);
      RC_ASSERT(std::ranges::count(paths.flows[path].route, bottleneck[path]) == 1);
    }
  }
}

RC_GTEST_PROP(FlowNetwork, ResolveNamesExactlyThePathsWhoseRateChanged, (std::uint32_t seed)) {
  Random random(seed);
  const bool dense = any_below(random, 2) == 0;
  FlowNetwork network = network_of(dense ? all_pairs(any_fabric(random), true, random)
                                         : fixtures::random_problem(random, 10, 15, false));
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
