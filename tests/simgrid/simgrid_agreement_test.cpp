// Our finish times against SimGrid's on random scenarios: an implementation that shares nothing
// with ours.
#include <gtest/gtest.h>

#include "tests/simgrid/simgrid_run.hpp"

namespace shardwright::sim::fixtures {
namespace {

constexpr double kTolerance = 1e-6;

void expect_agreement(const HostScenario& scenario) {
  SCOPED_TRACE(scenario.name);
  const auto ours = simulate_flows(scenario.flows);
  const auto theirs = run_in_simgrid(scenario);
  for (std::size_t i = 0; i < ours.flows.size(); ++i) {
    const double expected = theirs.flows[i].finish.value();
    ASSERT_NEAR(ours.flows[i].finish.value(), expected, kTolerance * expected) << "flow " << i;
  }
}

std::uint32_t between(Random& random, std::uint32_t least, std::uint32_t most) {
  return least + static_cast<std::uint32_t>(any_below(random, most - least + 1));
}

Fabric random_star(Random& random) {
  return Fabric::star(between(random, 2, 24));
}

Fabric random_leaf_spine(Random& random) {
  const std::array<double, 4> oversubscription{1.0, 2.0, 3.5, 8.0};
  return Fabric::leaf_spine(between(random, 2, 6), between(random, 1, 6), between(random, 1, 4),
                            oversubscription[any_below(random, oversubscription.size())]);
}

class Agreement : public ::testing::TestWithParam<int> {
 protected:
  Random random_{static_cast<std::uint64_t>(GetParam())};
};

TEST_P(Agreement, RandomStartsOnAStar) {
  expect_agreement(random_starts("star", random_star(random_), between(random_, 2, 150),
                                 milliseconds(2.0), random_()));
}

TEST_P(Agreement, RandomStartsOnAnOversubscribedLeafSpine) {
  expect_agreement(random_starts("leaf-spine", random_leaf_spine(random_), between(random_, 2, 150),
                                 milliseconds(2.0), random_()));
}

TEST_P(Agreement, ChainsOnALeafSpine) {
  expect_agreement(random_chains("chains", random_leaf_spine(random_), between(random_, 1, 20),
                                 between(random_, 1, 8), random_()));
}

TEST_P(Agreement, RingAllReduce) {
  expect_agreement(
      ring_all_reduce("ring", random_leaf_spine(random_), Bytes(1e6 * between(random_, 1, 100))));
}

TEST_P(Agreement, AllToAll) {
  expect_agreement(all_to_all("all-to-all", random_leaf_spine(random_),
                              Bytes(1e5 * between(random_, 1, 100)), random_() % 2 == 0,
                              random_()));
}

// 5 kinds of 40 seeds: 200 scenarios.
INSTANTIATE_TEST_SUITE_P(SimGrid, Agreement, ::testing::Range(0, 40));

}  // namespace
}  // namespace shardwright::sim::fixtures
