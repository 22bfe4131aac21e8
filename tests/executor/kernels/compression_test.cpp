// The compressed forms by themselves: the numbers that they have, and what they leave.
#include "executor/kernels/cpu/compression.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "core/lowering/replica_exchange.hpp"

namespace shardwright::executor {
namespace {

// What is sent and what is kept for later add up to what there was.
TEST(Compression, ConservesTheSum) {
  std::vector<float> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(static_cast<float>(i * i)) * static_cast<float>(i % 7);
  const auto sent = largest_elements(values, 100);
  float least = 1e9F, most_left = 0.0F;
  std::vector<float> left = values;
  for (const TopkElement& each : sent) {
    least = std::min(least, std::abs(each.value));
    left[each.place] = 0.0F;
  }
  for (const float each : left) most_left = std::max(most_left, std::abs(each));
  EXPECT_EQ(sent.size(), 100U);
  EXPECT_GE(least, most_left);
  std::vector<float> back(values.size(), 0.0F);
  for (const TopkElement& each : sent) back[each.place] += each.value;
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(back[i] + left[i], values[i]);
}

// Each value becomes the nearest number that E4M3 has, and each code is decoded and encoded again
// as itself.
TEST(Compression, TakesTheNearestNumberOfE4m3) {
  std::vector<float> numbers;
  for (int code = 0; code < 0x7F; ++code) {
    const float number = from_e4m3(static_cast<std::uint8_t>(code));
    EXPECT_EQ(to_e4m3(number), code);
    EXPECT_EQ(to_e4m3(-number), code | 0x80);
    EXPECT_EQ(from_e4m3(static_cast<std::uint8_t>(code | 0x80)), -number);
    numbers.push_back(number);
  }
  EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
  EXPECT_EQ(numbers[1], 0x1p-9F);
  EXPECT_EQ(numbers.back(), 448.0F);
  EXPECT_EQ(from_e4m3(to_e4m3(1000.0F)), 448.0F);
  std::mt19937 random(7);
  std::uniform_real_distribution<float> power(-11.0F, 9.0F);
  for (int i = 0; i < 2000; ++i) {
    const float value = std::exp2(power(random));
    float nearest = numbers.front();
    for (const float number : numbers)
      if (std::abs(number - value) < std::abs(nearest - value)) nearest = number;
    EXPECT_EQ(std::abs(from_e4m3(to_e4m3(value)) - value), std::abs(nearest - value)) << value;
  }
}

// Each value from -1 to 1 becomes the nearest power of two, or 0, and each code is decoded and
// encoded again as itself.
TEST(Compression, TakesTheNearestNumberOfE3m0) {
  std::vector<float> numbers;
  for (int code = 0; code < 8; ++code) {
    const float number = from_e3m0(static_cast<std::uint8_t>(code));
    EXPECT_EQ(to_e3m0(number), code);
    EXPECT_EQ(to_e3m0(-number), code | 8);
    numbers.push_back(number);
  }
  EXPECT_EQ(numbers[1], 0x1p-6F);
  EXPECT_EQ(numbers.back(), 1.0F);
  for (float value = 0.0F; value <= 1.0F; value += 1e-3F) {
    float nearest = 0.0F;
    for (const float number : numbers)
      if (std::abs(number - value) < std::abs(nearest - value)) nearest = number;
    EXPECT_EQ(std::abs(from_e3m0(to_e3m0(value)) - value), std::abs(nearest - value)) << value;
  }
}

// Error feedback: signs alone send less than half of a gradient at once, but over many exchanges of
// the same gradient their mean becomes the gradient.
TEST(Compression, OfSignsSendsTheGradientInTheLongRun) {
  constexpr std::size_t kElements = 2048;
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  std::vector<float> gradient(kElements), residual(kElements, 0.0F), mean(kElements, 0.0F);
  for (float& each : gradient) each = normal(random);
  const auto distance = [&](const std::vector<float>& values) {
    double sum = 0.0;
    for (std::size_t i = 0; i < kElements; ++i)
      sum += std::pow(static_cast<double>(values[i]) - static_cast<double>(gradient[i]), 2.0);
    return std::sqrt(sum / kElements);
  };
  constexpr int kExchanges = 200;
  std::vector<std::byte> part(
      static_cast<std::size_t>(coded_bytes(ReplicaCompression::OneBit, kElements)));
  for (int exchange = 0; exchange < kExchanges; ++exchange) {
    for (std::size_t i = 0; i < kElements; ++i) residual[i] += gradient[i];
    std::vector<float> sent(kElements, 0.0F);
    to_codes(ReplicaCompression::OneBit, residual, kElements, part.data());
    add_codes(ReplicaCompression::OneBit, part.data(), kElements, sent);
    if (exchange == 0) {
      EXPECT_GT(distance(sent), 0.5);
    }
    for (std::size_t i = 0; i < kElements; ++i) {
      residual[i] -= sent[i];
      mean[i] += sent[i] / kExchanges;
    }
  }
  EXPECT_LT(distance(mean), 0.1);
}

}  // namespace
}  // namespace shardwright::executor
