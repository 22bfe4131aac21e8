// The fit finds what made the data, says how sure it is, and refuses what the data do not
// determine.
#include "calibration/least_squares.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "calibration/profile_fit.hpp"
#include "core/spec/profile_library.hpp"

namespace shardwright::calibration {
namespace {

// Time = a + x / b at sizes x, with a deterministic wobble.
Residuals line_residuals(double a, double b, double wobble) {
  return [=](const std::vector<double>& values) {
    std::vector<double> residuals;
    for (int i = 0; i < 24; ++i) {
      const double x = std::exp2(i);
      const double measured = (a + x / b) * std::exp(wobble * std::sin(3.7 * i));
      residuals.push_back(std::log((values[0] + x / values[1]) / measured));
    }
    return residuals;
  };
}

TEST(LeastSquares, RecoversParametersWithinTheirIntervals) {
  const FitResult result =
      fit({{"a", 1.0, 1e-3, 1e6}, {"b", 1.0, 1e-3, 1e6}}, line_residuals(20.0, 50.0, 0.05));
  EXPECT_EQ(result.parameters[0].verdict, FitVerdict::Fitted);
  EXPECT_LE(result.parameters[0].low, 20.0);
  EXPECT_GE(result.parameters[0].high, 20.0);
  EXPECT_LE(result.parameters[1].low, 50.0);
  EXPECT_GE(result.parameters[1].high, 50.0);
  EXPECT_LT(result.parameters[0].high / result.parameters[0].low, 1.2);
}

TEST(LeastSquares, OddMeasurementsDoNotPullTheFit) {
  const Residuals clean = line_residuals(20.0, 50.0, 0.0);
  const FitResult result =
      fit({{"a", 1.0, 1e-3, 1e6}, {"b", 1.0, 1e-3, 1e6}}, [&](const std::vector<double>& values) {
        std::vector<double> residuals = clean(values);
        residuals[3] += 3.0;
        residuals[20] -= 3.0;
        return residuals;
      });
  EXPECT_NEAR(result.parameters[0].value, 20.0, 1.0);
  EXPECT_NEAR(result.parameters[1].value, 50.0, 2.5);
}

TEST(LeastSquares, LeavesWhatTheDataDoNotDetermineUnchanged) {
  const Residuals line = line_residuals(20.0, 50.0, 0.02);
  const FitResult result =
      fit({{"a", 1.0, 1e-3, 1e6}, {"unused", 0.3, 0.1, 1.0}, {"b", 1.0, 1e-3, 1e6}},
          [&](const std::vector<double>& values) {
            return line({values[0], values[2]});
          });
  EXPECT_EQ(result.parameters[1].verdict, FitVerdict::Undetermined);
  EXPECT_EQ(result.parameters[1].value, 0.3);
  EXPECT_EQ(result.parameters[0].verdict, FitVerdict::Fitted);
}

// A poor estimate replaces what it contradicts, and nothing that it agrees with.
TEST(LeastSquares, AWideIntervalReplacesOnlyWhatLiesOutsideOfIt) {
  const auto fit_from = [](double start, double widest_against) {
    const FitResult result =
        fit({{"a", start, 1e-3, 1e6, 1.5, widest_against}}, [](const std::vector<double>& values) {
          std::vector<double> residuals;
          for (const double measured : {3.0, 4.0, 9.0, 20.0, 28.0})
            residuals.push_back(std::log(values[0] / measured));
          return residuals;
        });
    return result.parameters.front();
  };
  const FittedParameter wide = fit_from(1.0, 3.0);
  ASSERT_EQ(wide.verdict, FitVerdict::Fitted);
  EXPECT_GT(wide.high / wide.value, 1.5);
  EXPECT_LT(wide.high / wide.value, 3.0);
  EXPECT_NEAR(wide.value, 9.0, 1.0);  // the geometric mean
  EXPECT_EQ(fit_from(1.0, 1.5).verdict, FitVerdict::Undetermined);
  EXPECT_EQ(fit_from(0.9 * wide.high, 3.0).verdict, FitVerdict::Undetermined);
}

TEST(LeastSquares, DistinguishesNoTwinParameters) {
  const FitResult result =
      fit({{"a", 2.0, 1e-3, 1e3}, {"twin", 3.0, 1e-3, 1e3}}, [](const std::vector<double>& values) {
        std::vector<double> residuals;
        for (int i = 0; i < 20; ++i)
          residuals.push_back(std::log(values[0] * values[1] / 30.0) + 0.01 * std::cos(i));
        return residuals;
      });
  EXPECT_EQ(result.parameters[0].verdict == FitVerdict::Undetermined,
            result.parameters[1].verdict != FitVerdict::Undetermined);
  EXPECT_NEAR(result.parameters[0].value * result.parameters[1].value, 30.0, 0.5);
}

// A limit that is within the interval of what the data say is as good a value as any there.
TEST(LeastSquares, TakesALimitThatTheDataAgreeWith) {
  const FitResult result =
      fit({{"a", 1.0, 1e-3, 20.0}, {"b", 1.0, 1e-3, 1e6}}, line_residuals(20.0, 50.0, 0.05));
  const FittedParameter& a = result.parameters[0];
  EXPECT_TRUE(is_determined(a.verdict));
  EXPECT_NEAR(a.value, 20.0, 1.0);
  EXPECT_LT(a.low, 20.0);
  EXPECT_LE(a.high, 20.0);
  EXPECT_GT(a.low, 20.0 / 1.5);
}

TEST(LeastSquares, StaysWhereTheDataAskForMoreThanTheLimit) {
  const FitResult result =
      fit({{"a", 1.0, 1e-3, 5.0}, {"b", 1.0, 1e-3, 1e6}}, line_residuals(20.0, 50.0, 0.01));
  EXPECT_EQ(result.parameters[0].verdict, FitVerdict::PushedToLimit);
  EXPECT_EQ(result.parameters[0].limit, 5.0);
  EXPECT_EQ(result.parameters[0].value, 1.0);
}

// All sizes are small beside a: b is at least something, and nothing determines what lies beyond.
TEST(LeastSquares, StaysWhereTheDataSayOnlyABound) {
  for (const double first : {1e3, 1e8, 1e15}) {
    const FitResult result =
        fit({{"a", 1.0, 1e-3, 1e6}, {"b", first, 1e-3, 1e18}}, line_residuals(20.0, 1e12, 0.02));
    EXPECT_FALSE(is_determined(result.parameters[1].verdict)) << first;
    EXPECT_EQ(result.parameters[1].value, first);
    // The fit reports a first value that is too low, and nothing of those that are as good as any
    // other.
    EXPECT_EQ(result.parameters[1].verdict == FitVerdict::PushedToLimit, first == 1e3);
  }
}

// The widths of Student's t distribution (tables: 12.706 standard errors at one degree of freedom,
// 2.262 at nine).
TEST(LeastSquares, FewRowsWidenTheInterval) {
  const auto half_width = [](int rows) {
    const FitResult result = fit({{"a", 1.0, 1e-3, 1e3}}, [&](const std::vector<double>& values) {
      std::vector<double> residuals;
      for (int i = 0; i < rows; ++i)
        residuals.push_back(std::log(values[0]) + (i % 2 == 0 ? 1e-3 : -1e-3));
      return residuals;
    });
    EXPECT_EQ(result.parameters[0].verdict, FitVerdict::Fitted);
    return std::log(result.parameters[0].high);
  };
  const auto standard_error = [](int rows) { return 1e-3 * std::sqrt(1.0 / (rows - 1)); };
  EXPECT_NEAR(half_width(2) / standard_error(2), 12.706, 0.02);
  EXPECT_NEAR(half_width(10) / standard_error(10), 2.262, 0.02);
}

// Timings that the model itself made from changed figures give these figures back.
TEST(ProfileFit, FindsTheFiguresThatMadeTheTimings) {
  AcceleratorSpec truth = *benchmarked_accelerator("h100-sxm");
  truth.efficiency.matrix_main_loop = 0.7;
  truth.efficiency.gemm_overhead = microseconds(8.0);
  std::vector<KernelTiming> timings;
  for (const std::int64_t m : {256, 1024, 4096, 16384}) {
    for (const std::int64_t k : {256, 1024, 4096}) {
      KernelTiming timing;
      timing.accelerator = "h100-sxm";
      timing.kernels = {{OpKind::Gemm, GemmWork{.m = m, .n = 4096, .k = k}, {}}};
      timing.measured = predict(timing, truth);
      timings.push_back(timing);
    }
  }
  AcceleratorSpec fitted = load_accelerator("h100-sxm");
  const double sustained = fitted.sustained_clock_ratio;
  const std::vector<FitStage> stages = fit_kernels(fitted, timings, "a test");
  ASSERT_EQ(stages.size(), 1U);
  EXPECT_NEAR(fitted.efficiency.matrix_main_loop, 0.7, 0.02);
  EXPECT_NEAR(fitted.efficiency.gemm_overhead.value(), 8e-6, 4e-7);
  EXPECT_EQ(fitted.efficiency.matrix_fp8, load_accelerator("h100-sxm").efficiency.matrix_fp8);
  EXPECT_EQ(fitted.sustained_clock_ratio, sustained);
  EXPECT_EQ(fitted.sources.at("/efficiency/gemm_overhead_s").confidence, Confidence::Fitted);
}

// A burst on this accelerator, with the time that `truth` predicts.
KernelTiming burst_of(const AcceleratorSpec& truth, std::vector<KernelTiming::Kernel> kernels,
                      Precision precision = Precision::Bf16) {
  KernelTiming timing;
  timing.accelerator = truth.name;
  timing.burst = true;
  timing.precision = precision;
  timing.kernels = std::move(kernels);
  timing.measured = predict(timing, truth);
  return timing;
}

TEST(ProfileFit, BurstsHaveFiguresOfTheirOwn) {
  AcceleratorSpec truth = *benchmarked_accelerator("gh200");
  truth.burst.gemm_overhead = microseconds(2.2);
  truth.burst.power_slowdown = 0.3;
  truth.burst.matrix_fp8 = 0.9;
  truth.burst.attention_forward = 0.66;
  std::vector<KernelTiming> timings;
  for (const std::int64_t m : {256, 1024, 4096, 16384, 65536}) {
    for (const std::int64_t k : {256, 1024, 4096, 16384}) {
      const GemmWork product{.m = m, .n = 4096, .k = k};
      const auto elements = static_cast<double>(m * k);
      MemoryWork cast;
      cast.read = Bytes(2.0 * elements);
      cast.written = Bytes(elements);
      timings.push_back(burst_of(truth, {{OpKind::Gemm, product, {}}}));
      timings.push_back(
          burst_of(truth, {{OpKind::Cast, cast, {}}, {OpKind::Gemm, product, {}}}, Precision::Fp8));
      AttentionWork attention;
      attention.batch = 2;
      attention.heads = attention.kv_heads = 16;
      attention.q_tokens = attention.kv_tokens = m;
      attention.qk_head_dim = attention.v_head_dim = 128;
      timings.push_back(burst_of(truth, {{OpKind::Attention, attention, {}}}));
    }
  }
  AcceleratorSpec fitted = load_accelerator("gh200");
  const std::vector<FitStage> stages = fit_kernels(fitted, timings, "a test");
  ASSERT_EQ(stages.size(), 3U);
  EXPECT_NEAR(fitted.burst.gemm_overhead.value(), 2.2e-6, 1e-7);
  EXPECT_NEAR(fitted.burst.power_slowdown, 0.3, 0.03);
  EXPECT_NEAR(fitted.burst.matrix_fp8, 0.9, 0.02);
  EXPECT_NEAR(fitted.burst.attention_forward, 0.66, 0.02);
  EXPECT_EQ(fitted.efficiency, load_accelerator("gh200").efficiency);
  EXPECT_EQ(fitted.sources.at("/burst/gemm_overhead_s").confidence, Confidence::Fitted);
}

TEST(ProfileFit, BurstsTakeTheFiguresOfOtherKernelsWhereTheyHaveNone) {
  AcceleratorSpec device = *benchmarked_accelerator("gh200");
  device.burst = {};
  KernelTiming timing =
      burst_of(device, {{OpKind::Gemm, GemmWork{.m = 512, .n = 512, .k = 512}, {}}});
  timing.burst = false;
  EXPECT_EQ(predict(timing, device), timing.measured);
  device.burst.gemm_overhead = device.efficiency.gemm_overhead / 2.0;
  EXPECT_EQ(predict(timing, device), timing.measured);
  timing.burst = true;
  EXPECT_LT(predict(timing, device), timing.measured);
}

}  // namespace
}  // namespace shardwright::calibration
