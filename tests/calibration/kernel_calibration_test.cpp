// Curves refitted to timings that a known curve made with noise: what the timings determine is
// found within the interval that is stated, and what they do not stays.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "calibration/part_calibration.hpp"
#include "sim/cost/curve_cost.hpp"

namespace shardwright::calibration {
namespace {

constexpr int kMachines = 300;
constexpr double kNoise = 0.03;

struct Drawn {
  KernelCurve truth, first;
  std::vector<Bytes> sizes;
};

class Draw {
 public:
  // A machine, and sizes at which moving the bytes takes these shares of the time of the launch.
  // The profile to begin with is off by up to a factor of 3.
  Drawn machine(const std::vector<double>& shares) {
    Drawn drawn;
    drawn.truth.kind = OpKind::Norm;
    drawn.truth.overhead = Seconds(between(2e-6, 2e-4));
    drawn.truth.bandwidth = BytesPerSecond(between(5e8, 5e10));
    drawn.first = drawn.truth;
    drawn.first.overhead *= between(1.0 / 3.0, 3.0);
    drawn.first.bandwidth = drawn.first.bandwidth * between(1.0 / 3.0, 3.0);
    for (const double share : shares)
      drawn.sizes.push_back(share * (drawn.truth.overhead * drawn.truth.bandwidth));
    return drawn;
  }

  std::vector<KernelSample> timings(const Drawn& drawn, int steps = 5) {
    std::vector<KernelSample> samples;
    for (const Bytes size : drawn.sizes) {
      KernelSample& sample = samples.emplace_back();
      sample.kind = drawn.truth.kind;
      sample.work = MemoryWork{.read = size, .written = {}, .flop = {}};
      const Seconds time = sim::curve_time(drawn.truth, sample.work);
      for (int step = 0; step < steps; ++step)
        sample.times.push_back(time * std::exp(kNoise * normal_(random_)));
    }
    return samples;
  }

 private:
  double between(double least, double most) {  // evenly in logarithms
    return std::exp(std::uniform_real_distribution(std::log(least), std::log(most))(random_));
  }

  std::mt19937_64 random_{2026};
  std::normal_distribution<double> normal_;
};

struct Refitted {
  KernelCurve curve;
  FittedParameter overhead, bandwidth;
  Sources sources;
};

Refitted refit(const KernelCurve& first, const std::vector<KernelSample>& samples,
               const Sources& known = {}) {
  ClusterSpec cluster;
  cluster.accelerator.architecture = Architecture::Cpu;
  cluster.accelerator.kernel_curves = {first};
  cluster.accelerator.sources = known;
  std::vector<CalibratedFigure> figures;
  calibrate_kernels(cluster, samples, StackSpec{}, true, {"test", Confidence::Fitted, figures});
  Refitted refitted{cluster.accelerator.kernel_curves.front(), {}, {}, cluster.accelerator.sources};
  for (const CalibratedFigure& figure : figures) {
    (figure.pointer.ends_with("/overhead_s") ? refitted.overhead : refitted.bandwidth) = figure.fit;
  }
  return refitted;
}

bool covers(const FittedParameter& figure, double truth) {
  return figure.low <= truth && truth <= figure.high;
}

// Every refitted curve has this: a figure moves only within a stated interval that is narrow
// enough, and a figure that stays is as it was, without a source.
void expect_honest(const FittedParameter& figure, double first, double now,
                   const Refitted& refitted) {
  const bool has_source = refitted.sources.contains(figure.name);
  if (!is_determined(figure.verdict)) {
    EXPECT_EQ(now, first) << figure.name;
    EXPECT_FALSE(has_source);
    return;
  }
  EXPECT_TRUE(covers(figure, now)) << figure.name;
  EXPECT_LE(figure.high / figure.low, 1.5 * 1.5 * (1.0 + 1e-9));
  EXPECT_TRUE(has_source);
}

void expect_honest(const Drawn& drawn, const Refitted& refitted) {
  expect_honest(refitted.overhead, drawn.first.overhead.value(), refitted.curve.overhead.value(),
                refitted);
  expect_honest(refitted.bandwidth, drawn.first.bandwidth.value(), refitted.curve.bandwidth.value(),
                refitted);
}

TEST(KernelCalibration, KeepsABandwidthThatOnlySmallKernelsWereTimedFor) {
  Draw draw;
  int covered = 0;
  for (int i = 0; i < kMachines; ++i) {
    const Drawn drawn = draw.machine({1e-4, 3e-4, 1e-3, 3e-3});
    const Refitted refitted = refit(drawn.first, draw.timings(drawn));
    EXPECT_EQ(refitted.curve.bandwidth, drawn.first.bandwidth);
    EXPECT_FALSE(is_determined(refitted.bandwidth.verdict));
    EXPECT_EQ(refitted.overhead.verdict, FitVerdict::Fitted);
    covered += covers(refitted.overhead, drawn.truth.overhead.value());
    expect_honest(drawn, refitted);
  }
  EXPECT_GE(covered, kMachines * 9 / 10);
}

TEST(KernelCalibration, FindsBothFiguresOfSmallAndLargeKernelsWithinTheirIntervals) {
  Draw draw;
  int overheads = 0, bandwidths = 0;
  for (int i = 0; i < kMachines; ++i) {
    const Drawn drawn = draw.machine({0.03, 0.3, 1.0, 3.0, 30.0});
    const Refitted refitted = refit(drawn.first, draw.timings(drawn));
    EXPECT_EQ(refitted.overhead.verdict, FitVerdict::Fitted);
    EXPECT_EQ(refitted.bandwidth.verdict, FitVerdict::Fitted);
    overheads += covers(refitted.overhead, drawn.truth.overhead.value());
    bandwidths += covers(refitted.bandwidth, drawn.truth.bandwidth.value());
    expect_honest(drawn, refitted);
  }
  EXPECT_GE(overheads, kMachines * 92 / 100);
  EXPECT_GE(bandwidths, kMachines * 92 / 100);
}

// 95 % of the intervals hold the truth however few timings there are: of two, at 1.96 standard
// errors, only seven in ten would.
TEST(KernelCalibration, IntervalsOfFewTimingsAreAsWideAsTheyHaveToBe) {
  Draw draw;
  int determined = 0, covered = 0;
  for (int i = 0; i < kMachines; ++i) {
    const Drawn drawn = draw.machine({1e-4});
    const Refitted refitted = refit(drawn.first, draw.timings(drawn, 2));
    if (!is_determined(refitted.overhead.verdict)) continue;
    ++determined;
    covered += covers(refitted.overhead, drawn.truth.overhead.value());
  }
  EXPECT_GT(determined, kMachines / 2);
  EXPECT_GE(covered, determined * 92 / 100);
}

// Whatever was timed: mixed sizes, few steps, kernels that a curve does not describe.
TEST(KernelCalibration, NothingGoesToTheEndOfItsRange) {
  Draw draw;
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(-4.0, 2.0), odd(0.5, 2.0);
  for (int i = 0; i < kMachines; ++i) {
    std::vector<double> shares(1 + random() % 4);
    for (double& share : shares) share = std::pow(10.0, exponent(random));
    const Drawn drawn = draw.machine(shares);
    std::vector<KernelSample> samples = draw.timings(drawn, 1 + static_cast<int>(random() % 5));
    for (KernelSample& sample : samples) {
      const double factor = odd(random);
      for (Seconds& time : sample.times) time *= factor;
    }
    const Refitted refitted = refit(drawn.first, samples);
    expect_honest(drawn, refitted);
    EXPECT_LT(refitted.curve.bandwidth, drawn.truth.bandwidth * 1e3);
    EXPECT_GT(refitted.curve.overhead, drawn.truth.overhead * 1e-3);
  }
}

// No timing of one size tells launching from moving bytes. A profile that knows the bandwidth to a
// tenth, and guesses the overhead, has the overhead explain some microseconds, and the bandwidth a
// machine that is slower altogether.
TEST(KernelCalibration, OneSizeMovesWhatTheProfileKnowsLess) {
  KernelCurve first;
  first.kind = OpKind::Norm;
  first.overhead = microseconds(1.0);
  first.bandwidth = gigabytes_per_second(4.0);
  Provenance tenth{"probe", Confidence::Measured};
  tenth.low = 3.6e9;
  tenth.high = 4.4e9;
  const Sources known = {{"/kernel_curves/0/bandwidth_bytes_per_s", tenth}};
  const auto refitted = [&](double bytes, double time_us, const Sources& sources) {
    KernelSample sample;
    sample.kind = OpKind::Norm;
    sample.work = MemoryWork{.read = Bytes(bytes), .written = {}, .flop = {}};
    for (const double noise : {0.98, 1.0, 1.01, 1.02, 0.99})
      sample.times.push_back(microseconds(time_us) * noise);
    const Refitted result = refit(first, {sample}, sources);
    // The other stays, and is not called determined beside it.
    EXPECT_NE(is_determined(result.overhead.verdict), is_determined(result.bandwidth.verdict));
    return result;
  };
  const Refitted small = refitted(2e4, 12.0, known);  // 6 us as the profile says
  EXPECT_EQ(small.curve.bandwidth, first.bandwidth);
  EXPECT_NEAR(small.curve.overhead.value(), 7e-6, 2e-7);
  EXPECT_EQ(refitted(2e4, 12.0, {}).curve.overhead, first.overhead);
  const Refitted slow = refitted(4e6, 3000.0, known);  // 1,001 us as the profile says
  EXPECT_EQ(slow.curve.overhead, first.overhead);
  EXPECT_NEAR(slow.curve.bandwidth.value(), 4e9 / 3.0, 2e7);
}

// A device prices a phase without a curve by that of another phase: a guess would be worse.
TEST(KernelCalibration, APhaseOfWhichNothingIsDeterminedGetsNoCurve) {
  Draw draw;
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(-4.0, 2.0), odd(-2.0, 2.0);
  int without = 0;
  for (int i = 0; i < kMachines; ++i) {
    std::vector<double> shares(1 + random() % 4);
    for (double& share : shares) share = std::pow(10.0, exponent(random));
    const Drawn drawn = draw.machine(shares);
    std::vector<KernelSample> samples = draw.timings(drawn, 1 + static_cast<int>(random() % 3));
    for (KernelSample& sample : samples) {
      const double factor = std::exp(odd(random));
      sample.phase = Phase::BackwardInput;
      for (Seconds& time : sample.times) time *= factor;
    }
    ClusterSpec before;
    before.accelerator.architecture = Architecture::Cpu;
    before.accelerator.kernel_curves = {drawn.first};
    ClusterSpec after = before;
    std::vector<CalibratedFigure> figures;
    const std::vector<std::string> names =
        calibrate_kernels(after, samples, StackSpec{}, true, {"test", Confidence::Fitted, figures});
    const std::vector<KernelCurve>& curves = after.accelerator.kernel_curves;
    if (names.empty()) {
      ASSERT_EQ(curves.size(), 2U);
      EXPECT_EQ(curves[0], drawn.first);
      ASSERT_EQ(figures.size(), 2U);
      EXPECT_TRUE(is_determined(figures[0].fit.verdict) || is_determined(figures[1].fit.verdict));
      for (const CalibratedFigure& figure : figures)
        EXPECT_TRUE(figure.pointer.starts_with("/accelerator/kernel_curves/1/"));
      continue;
    }
    ++without;
    EXPECT_EQ(names, std::vector<std::string>{"norm backward_input"});
    EXPECT_TRUE(figures.empty());
    EXPECT_EQ(after.accelerator, before.accelerator);
    for (const KernelSample& sample : samples) {
      const KernelCurve* curve = sim::curve_of(after.accelerator, sample.kind, sample.phase);
      ASSERT_NE(curve, nullptr);
      EXPECT_EQ(sim::curve_time(*curve, sample.work), sim::curve_time(drawn.first, sample.work));
    }
  }
  EXPECT_GE(without, kMachines / 10);
  EXPECT_LE(without, kMachines * 9 / 10);
}

// Two kernels of one curve that take as long for twice the bytes: no bandwidth explains that.
TEST(KernelCalibration, NamesTheLimitThatContradictoryTimingsPushTo) {
  KernelCurve first;
  first.kind = OpKind::Loss;
  first.overhead = microseconds(20.0);
  first.bandwidth = gigabytes_per_second(1.6);
  std::vector<KernelSample> samples(2);
  for (std::size_t i = 0; i < 2; ++i) {
    samples[i].kind = OpKind::Loss;
    samples[i].work =
        MemoryWork{.read = Bytes(2.2e5 * static_cast<double>(1 + i)), .written = {}, .flop = {}};
    for (const double noise : {0.98, 1.0, 1.01, 1.02, 0.99})
      samples[i].times.push_back(microseconds(160.0) * noise);
  }
  const Refitted refitted = refit(first, samples);
  EXPECT_EQ(refitted.bandwidth.verdict, FitVerdict::PushedToLimit);
  EXPECT_EQ(refitted.bandwidth.limit, 1e14);
  EXPECT_EQ(refitted.curve.bandwidth, first.bandwidth);
}

}  // namespace
}  // namespace shardwright::calibration
