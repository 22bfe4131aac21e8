#include "calibration/error_statistics.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace shardwright::calibration {
namespace {

TEST(ErrorStatistics, QuantilesAreLinearBetweenSamples) {
  EXPECT_DOUBLE_EQ(quantile({3.0, 1.0, 2.0}, 0.5), 2.0);
  EXPECT_DOUBLE_EQ(quantile({1.0, 2.0}, 0.5), 1.5);
  EXPECT_DOUBLE_EQ(quantile({0.0, 10.0}, 0.9), 9.0);
  EXPECT_DOUBLE_EQ(quantile({7.0}, 0.9), 7.0);
}

TEST(ErrorStatistics, SummaryOfSignedErrors) {
  const ErrorSummary summary =
      summarise({{-0.1, true}, {0.3, false}, {-0.2, true}, {-0.2, true}, {0.1, false}});
  EXPECT_EQ(summary.n, 5U);
  EXPECT_DOUBLE_EQ(summary.median_abs, 0.2);
  EXPECT_DOUBLE_EQ(summary.mean_abs, 0.18);
  EXPECT_DOUBLE_EQ(summary.bias, -0.1);
  EXPECT_DOUBLE_EQ(summary.coverage, 0.6);
}

TEST(ErrorStatistics, SummaryOfNothingIsZero) {
  EXPECT_EQ(summarise({}).n, 0U);
  EXPECT_EQ(summarise({}).p90_abs, 0.0);
}

std::optional<double> tau_of(const std::vector<double>& measured,
                             const std::vector<double>& predicted) {
  std::vector<RankedValue> values;
  for (std::size_t i = 0; i < measured.size(); ++i)
    values.push_back({std::to_string(i), measured[i], predicted[i]});
  return kendall_tau(values);
}

TEST(ErrorStatistics, KendallsTau) {
  EXPECT_DOUBLE_EQ(*tau_of({1, 2, 3, 4}, {10, 20, 30, 40}), 1.0);
  EXPECT_DOUBLE_EQ(*tau_of({1, 2, 3, 4}, {4, 3, 2, 1}), -1.0);
  // Five of six pairs agree: (5 - 1) / 6.
  EXPECT_DOUBLE_EQ(*tau_of({1, 2, 3, 4}, {1, 2, 4, 3}), 4.0 / 6.0);
  // One of three pairs has no measured order; both others are found.
  EXPECT_DOUBLE_EQ(*tau_of({1, 1, 2}, {1, 2, 3}), 1.0);
  // One of three pairs is predicted to be alike and is not.
  EXPECT_DOUBLE_EQ(*tau_of({1, 2, 3}, {1, 1, 2}), 2.0 / 3.0);
  EXPECT_DOUBLE_EQ(*tau_of({1, 2, 3}, {4, 4, 4}), 0.0);
  EXPECT_FALSE(tau_of({1, 1, 1}, {1, 2, 3}).has_value());
}

TEST(ErrorStatistics, RepeatedMeasurementsOfOneItemAreNotRanked) {
  EXPECT_DOUBLE_EQ(*kendall_tau({{"a", 1, 5}, {"a", 2, 5}, {"b", 3, 6}}), 1.0);
  EXPECT_FALSE(kendall_tau({{"a", 1, 5}, {"a", 2, 5}}).has_value());
}

}  // namespace
}  // namespace shardwright::calibration
