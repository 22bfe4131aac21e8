// How unevenly tokens lie on the ranks of experts.
#include "core/lowering/expert_load.hpp"

#include <gtest/gtest.h>

#include <cmath>
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

ModelSpec sparse_model() {
  ModelSpec model;
  model.moe.emplace();
  model.moe->experts = 128;
  return model;
}

double load_of(const ModelSpec& model, std::int64_t ep) {
  Plan plan;
  plan.ep = ep;
  return expert_load(model, plan);
}

TEST(ExpertLoad, GrowsWithTheRanksAndShrinksWithTheExpertsOfARank) {
  ModelSpec model = sparse_model();
  EXPECT_EQ(load_of(model, 1), 1.0);
  for (std::int64_t ep = 2; ep <= 128; ep *= 2) {
    EXPECT_GT(load_of(model, ep), load_of(model, ep / 2)) << ep;
    model.moe->experts = 256;
    const double more_experts = load_of(model, ep);
    model.moe->experts = 128;
    EXPECT_LT(more_experts, load_of(model, ep)) << ep;
  }
}

TEST(ExpertLoad, IsEvenWhereTheRouterIsForced) {
  ModelSpec model = sparse_model();
  model.moe->balanced_routing = true;
  EXPECT_EQ(load_of(model, 64), 1.0);
}

// No rank gets more than all tokens.
TEST(ExpertLoad, IsAtMostTheNumberOfRanks) {
  ModelSpec model = sparse_model();
  model.moe->load_variation = 1.0;
  for (const std::int64_t ep : {2, 16, 128}) EXPECT_LE(load_of(model, ep), static_cast<double>(ep));
}

}  // namespace
}  // namespace shardwright
