#include "core/base/normal_extremes.hpp"

#include <gtest/gtest.h>

#include <numbers>

namespace shardwright {
namespace {

// Tippett's table of the expected extreme of n normal variables, and the closed forms for 2 and 3.
TEST(ExpectedMaximum, IsThatOfTheTables) {
  EXPECT_EQ(expected_maximum(1), 0.0);
  EXPECT_NEAR(expected_maximum(2), std::numbers::inv_sqrtpi, 1e-12);
  EXPECT_NEAR(expected_maximum(3), 1.5 * std::numbers::inv_sqrtpi, 1e-12);
  EXPECT_NEAR(expected_maximum(10), 1.53875, 1e-5);
  EXPECT_NEAR(expected_maximum(100), 2.50759, 1e-5);
  EXPECT_NEAR(expected_maximum(1000), 3.24144, 1e-5);
}

}  // namespace
}  // namespace shardwright
