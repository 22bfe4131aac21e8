// The slowdown of kernels beside collectives, from samples as noise makes them.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "calibration/part_calibration.hpp"

namespace shardwright::calibration {
namespace {

struct Slowdown {
  double now = 0.0;
  CalibratedFigure figure;
};

// Fitted to samples, where the profile says 0.5.
Slowdown slowdown_of(const std::vector<double>& samples) {
  ClusterSpec cluster;
  cluster.stack.emplace();
  cluster.stack->overlap.slowdown = 0.5;
  std::vector<CalibratedFigure> figures;
  RunSamples run;
  run.slowdowns = samples;
  calibrate_stack(cluster, {MeasuredRun{}}, {run}, {"test", Confidence::Fitted, figures});
  const auto figure = std::find_if(figures.begin(), figures.end(), [](const auto& each) {
    return each.pointer == "/stack/overlap/slowdown_ratio";
  });
  return {cluster.stack->overlap.slowdown, *figure};
}

std::vector<double> samples_around(double mean, double noise, int count = 32) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal(mean, noise);
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) samples.push_back(normal(random));
  return samples;
}

TEST(StackCalibration, FindsASlowdownAndHowSureItIs) {
  const Slowdown found = slowdown_of(samples_around(0.3, 0.05));
  EXPECT_EQ(found.figure.fit.verdict, FitVerdict::Fitted);
  EXPECT_NEAR(found.now, 0.3, 0.03);
  EXPECT_LE(found.figure.fit.low, 0.3);
  EXPECT_GE(found.figure.fit.high, 0.3);
  EXPECT_EQ(found.figure.fit.before, 0.5);
}

// Half of the samples of no slowdown at all are below zero, and count as much as the others.
TEST(StackCalibration, NoSlowdownHasTheResidualThatItsSamplesHave) {
  const Slowdown found = slowdown_of(samples_around(0.0, 0.05));
  EXPECT_TRUE(is_determined(found.figure.fit.verdict));
  EXPECT_LT(found.now, 0.03);
  EXPECT_EQ(found.figure.fit.low, 0.0);
  EXPECT_GT(found.figure.fit.high, 0.005);
  EXPECT_NEAR(found.figure.residual, 0.6745 * 0.05, 0.015);  // the median of a normal deviation
}

// Kernels that ran faster beside collectives than alone are due to something else.
TEST(StackCalibration, KernelsThatAreFasterBesideCollectivesLeaveTheSlowdown) {
  const Slowdown found = slowdown_of(samples_around(-0.3, 0.05));
  EXPECT_EQ(found.figure.fit.verdict, FitVerdict::PushedToLimit);
  EXPECT_EQ(found.figure.fit.limit, 0.0);
  EXPECT_EQ(found.now, 0.5);
  EXPECT_GT(found.figure.residual, 0.2);
}

TEST(StackCalibration, WildSamplesLeaveTheSlowdown) {
  const Slowdown found = slowdown_of(samples_around(0.3, 2.0, 6));
  EXPECT_EQ(found.figure.fit.verdict, FitVerdict::Undetermined);
  EXPECT_EQ(found.now, 0.5);
}

}  // namespace
}  // namespace shardwright::calibration
