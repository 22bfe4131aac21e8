// The slowest of many accelerators.
#include "sim/cost/slowest_device.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "sim/step/fidelity.hpp"
#include "tests/sim/step/random_scenario.hpp"

namespace shardwright::sim {
namespace {

AcceleratorSpec varying(double variation) {
  AcceleratorSpec accelerator;
  accelerator.speed_variation = variation;
  return accelerator;
}

// Blom's approximation of the expected extreme (Statistical Estimates and Transformed
// Beta-Variables, 1958): the quantile (n - 3/8) / (n + 1/4) of the normal distribution.
TEST(SlowestDevice, IsAsFarOffAsBlomsQuantile) {
  for (const std::int64_t devices : {8, 64, 512, 4096, 16384}) {
    const double factor = slowest_device_factor(varying(0.02), devices);
    const double count = static_cast<double>(devices);
    const double quantile = (count - 0.375) / (count + 0.25);
    const double beyond = (factor - 1.0) / 0.02;
    EXPECT_NEAR((1.0 - quantile) / (0.5 * std::erfc(beyond / std::numbers::sqrt2)), 1.0, 0.08)
        << devices;
  }
}

TEST(SlowestDevice, OneDeviceAndAlikeDevicesAreAsUsual) {
  EXPECT_EQ(slowest_device_factor(varying(0.02), 1), 1.0);
  EXPECT_EQ(slowest_device_factor(varying(0.0), 16384), 1.0);
}

TEST(SlowestDevice, ShippedAcceleratorsVary) {
  for (const std::string& name : shipped_accelerators()) {
    const double variation = load_accelerator(name).speed_variation;
    EXPECT_GT(variation, 0.0) << name;
    EXPECT_LT(variation, 0.03) << name;
  }
}

// A rank's own random factor takes the place of the slowest of all: with next to none, the step is
// that of accelerators that are all alike.
TEST(SlowestDevice, IsNotCountedTwiceWhereRanksHaveFactorsOfTheirOwn) {
  Scenario scenario = fixtures::shipped_scenario("llama3-8b");
  scenario.plan.tp = 8;
  scenario.plan.global_batch = 4;
  const Seconds slowest = simulate_at(scenario, Fidelity::Full).result.step;
  FullOptions options;
  options.variation.rank_jitter = 1e-9;
  const SimulatedStep drawn_level = simulate_at(scenario, Fidelity::Full, options);
  const Seconds drawn = drawn_level.result.step;
  EXPECT_EQ(drawn_level.event_step, simulate_at(scenario, Fidelity::Event).result.step);
  scenario.cluster.accelerator.speed_variation = 0.0;
  const Seconds alike = simulate_at(scenario, Fidelity::Full).result.step;
  EXPECT_NEAR(drawn / alike, 1.0, 1e-6);
  EXPECT_GT(slowest / alike, 1.005);
}

}  // namespace
}  // namespace shardwright::sim
