// Exchange curves come of timings that determine something of them, and of no others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "calibration/part_calibration.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/cost/collective_cost.hpp"

namespace shardwright::calibration {
namespace {

using nlohmann::json;

Seconds by_formula(const ExchangeSample& sample, const ClusterSpec& cluster) {
  const sim::GroupPlacement placement = placed(sample, cluster).placement;
  return sim::collective_cost(sample.kind, sample.bytes, placement, cluster, StackSpec{}).time;
}

// Groups with one timing or several, of which each is off by a factor of its own, or all of a group
// by one.
std::vector<ExchangeSample> draw_timings(const ClusterSpec& cluster, std::mt19937_64& random) {
  const auto one_of = [&](const auto& values) { return values[random() % values.size()]; };
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> exponent(2.0, 9.0);
  std::vector<ExchangeSample> samples;
  const std::size_t groups = 1 + random() % 4;
  for (std::size_t group = 0; group < groups; ++group) {
    ExchangeSample sample;
    sample.kind = one_of(std::vector{OpKind::AllReduce, OpKind::AllGather, OpKind::ReduceScatter});
    sample.members = one_of(std::vector<std::int64_t>{2, 4, 8, 16});
    const double common = std::exp(0.5 * normal(random));
    const double spread = one_of(std::vector{0.02, 1.5});
    const std::size_t timings = 1 + random() % 5;
    for (std::size_t i = 0; i < timings; ++i) {
      sample.bytes = Bytes(std::pow(10.0, exponent(random)));
      sample.time = by_formula(sample, cluster) * (common * std::exp(spread * normal(random)));
      samples.push_back(sample);
    }
  }
  return samples;
}

std::size_t groups_of(const std::vector<ExchangeSample>& samples) {
  std::set<std::pair<OpKind, std::int64_t>> groups;
  for (const ExchangeSample& each : samples) groups.emplace(each.kind, each.members);
  return groups.size();
}

bool determines_something(const Calibration& calibration) {
  return std::any_of(
      calibration.figures.begin(), calibration.figures.end(),
      [](const CalibratedFigure& figure) { return is_determined(figure.fit.verdict); });
}

// The file holds at the place of each figure the value that is reported of it.
void expect_figures_in_profile(const Calibration& calibration) {
  const json profile = to_json(calibration.cluster);
  for (const CalibratedFigure& figure : calibration.figures) {
    const json::json_pointer place(figure.pointer);
    if (!figure.pointer.starts_with("/exchange_curves/")) continue;
    ASSERT_TRUE(profile.contains(place)) << figure.pointer;
    EXPECT_EQ(profile.at(place).at("value"), figure.fit.value) << figure.pointer;
    const std::string confidence = profile.at(place).at("confidence");
    EXPECT_EQ(confidence, is_determined(figure.fit.verdict) ? "fitted" : "assumed");
    const json& curve = profile.at(place.parent_pointer());
    EXPECT_THAT(figure.about, ::testing::StartsWith(curve.at("kind").get<std::string>() + " of " +
                                                    curve.at("members").dump() + " on "));
  }
}

// A curve stands for what was determined of it; who has none is named.
void expect_curves_of_what_is_known(const Calibration& calibration, std::size_t groups) {
  std::set<std::string> fitted;
  for (const CalibratedFigure& figure : calibration.figures)
    if (is_determined(figure.fit.verdict)) fitted.insert(figure.about);
  EXPECT_EQ(calibration.cluster.exchange_curves.size() + calibration.without_curve.size(), groups);
  for (const std::string& name : calibration.without_curve) EXPECT_FALSE(fitted.contains(name));
  for (const CalibratedFigure& figure : calibration.figures) {
    if (figure.pointer.starts_with("/exchange_curves/")) {
      EXPECT_TRUE(fitted.contains(figure.about));
    }
  }
}

TEST(ExchangeCalibration, TimingsThatDetermineNothingChangeNothing) {
  const ClusterSpec cluster = load_cluster("dgx-h100");
  const json before = to_json(cluster);
  std::mt19937_64 random(2026);
  int silent = 0, mixed = 0;
  for (int i = 0; i < 150; ++i) {
    CalibrationData data;
    data.exchanges = draw_timings(cluster, random);
    const Calibration calibration = calibrate(cluster, data, "test");
    expect_figures_in_profile(calibration);
    expect_curves_of_what_is_known(calibration, groups_of(data.exchanges));
    mixed += !calibration.without_curve.empty() && !calibration.cluster.exchange_curves.empty();
    if (determines_something(calibration)) continue;
    ++silent;
    EXPECT_EQ(json(to_json(calibration.cluster)), before);
    for (const OpErrors& ops : calibration.ops) {
      EXPECT_EQ(ops.before.median_abs, ops.after.median_abs);
      EXPECT_EQ(ops.before.bias, ops.after.bias);
    }
  }
  EXPECT_GE(silent, 15);
  EXPECT_GE(mixed, 15);
}

// Two sizes of one group, each of which asks for something else of the same links.
TEST(ExchangeCalibration, AGroupOfWhichNothingIsDeterminedKeepsTheFormula) {
  const ClusterSpec cluster = load_cluster("dgx-h100");
  const auto timed = [](double bytes, double time_us) {
    return ExchangeSample{OpKind::AllReduce, 2, 1, Bytes(bytes), microseconds(time_us),
                          HostSpread{1, 1}};
  };
  CalibrationData data;
  data.exchanges = {timed(1 << 20, 45.2), timed(1 << 27, 500.2)};
  const Calibration calibration = calibrate(cluster, data, "test");
  EXPECT_FALSE(determines_something(calibration));
  EXPECT_TRUE(calibration.cluster.exchange_curves.empty());
  EXPECT_EQ(calibration.without_curve, std::vector<std::string>{"all_reduce of 2 on 1 node"});
  ASSERT_EQ(calibration.ops.size(), 1U);
  EXPECT_EQ(calibration.ops.front().after.median_abs, calibration.ops.front().before.median_abs);
  EXPECT_FALSE(calibration.ops.front().got_worse());
}

// Messages that a buffer takes in move faster than the link: no line meets them and large ones,
// whose time is the step's.
TEST(ExchangeCalibration, LinesMeetLargeExchangesThoughSmallOnesPassThroughBuffers) {
  const ClusterSpec cluster = load_cluster("dgx-h100");
  const double latency_s = 1e-3, bytes_per_s = 12.5e6, buffer = 131072;
  const auto timed = [&](double bytes) {
    return latency_s +
           (0.25 * std::min(bytes, buffer) + std::max(0.0, bytes - buffer)) / bytes_per_s;
  };
  CalibrationData data;
  for (double bytes = 64; bytes <= 1 << 24; bytes *= 4) {
    data.exchanges.push_back(
        {OpKind::AllReduce, 2, 1, Bytes(bytes), Seconds(timed(bytes)), HostSpread{2, 1}});
  }
  const ClusterSpec calibrated = calibrate(cluster, data, "test").cluster;
  for (const double bytes : {1 << 20, 1 << 22, 1 << 24}) {
    const sim::GroupPlacement placement = placed(data.exchanges.front(), calibrated).placement;
    const Seconds predicted =
        sim::collective_time(OpKind::AllReduce, Bytes(bytes), placement, calibrated, StackSpec{});
    EXPECT_NEAR(predicted.value() / timed(bytes), 1.0, 0.10) << bytes;
  }
}

}  // namespace
}  // namespace shardwright::calibration
