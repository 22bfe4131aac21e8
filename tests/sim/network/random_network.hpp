// Random links and routes for the tests of the flow-level network.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "tests/sim/network/max_min_rates.hpp"

namespace shardwright::sim::fixtures {

using Random = std::mt19937_64;

inline std::size_t any_below(Random& random, std::size_t count) {
  return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
}

inline std::vector<BytesPerSecond> random_capacities(Random& random, std::size_t links) {
  std::uniform_real_distribution<double> exponent(0.0, 2.0);
  std::vector<BytesPerSecond> capacities;
  // Every third a round number: equal capacities make the ties that random ones never do.
  for (std::size_t i = 0; i < links; ++i) {
    capacities.push_back(i % 3 == 0 ? BytesPerSecond(10.0)
                                    : BytesPerSecond(std::pow(10.0, exponent(random))));
  }
  return capacities;
}

inline std::vector<LinkIndex> random_route(Random& random, std::size_t links, std::size_t longest) {
  std::vector<LinkIndex> all(links);
  std::iota(all.begin(), all.end(), LinkIndex{0});
  std::shuffle(all.begin(), all.end(), random);
  all.resize(1 + any_below(random, std::min(longest, links)));
  return all;
}

inline MaxMinProblem random_problem(Random& random, std::size_t most_links, std::size_t most_flows,
                                    bool weighted) {
  MaxMinProblem problem;
  problem.capacities = random_capacities(random, 1 + any_below(random, most_links));
  const std::size_t flows = 1 + any_below(random, most_flows);
  std::uniform_real_distribution<double> weight(0.5, 2.0), cap(0.1, 20.0);
  for (std::size_t i = 0; i < flows; ++i) {
    MaxMinFlow flow;
    flow.route = random_route(random, problem.capacities.size(), 5);
    if (weighted) {
      for (std::size_t hop = 0; hop < flow.route.size(); ++hop)
        flow.weights.push_back(weight(random));
    }
    if (any_below(random, 4) == 0) flow.rate_cap = BytesPerSecond(cap(random));
    problem.flows.push_back(flow);
  }
  return problem;
}

}  // namespace shardwright::sim::fixtures
