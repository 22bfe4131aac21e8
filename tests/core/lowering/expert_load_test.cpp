// Tokens lie unevenly on the ranks of experts.
#include "core/lowering/modules/expert_load.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace shardwright {
namespace {

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

// E[min(X, c)] by the trapezoidal rule over ten deviations.
double kept_share(double capacity, double variation) {
  constexpr int kSteps = 20'000;
  const double step = 20.0 / kSteps;
  double sum = 0.0;
  for (int i = 0; i <= kSteps; ++i) {
    const double z = -10.0 + step * i;
    const double density = std::exp(-0.5 * z * z) / std::sqrt(2.0 * std::numbers::pi);
    sum += density * std::min(1.0 + variation * z, capacity) * step;
  }
  return sum;
}

TEST(ExpertCapacity, DropsTheTokensBeyondIt) {
  MoeSpec moe = *sparse_model().moe;
  EXPECT_EQ(expert_rows_ratio(moe), 1.0);
  for (const double variation : {0.05, 0.3, 1.0}) {
    for (const double capacity : {0.5, 1.0, 1.25, 2.0}) {
      moe.load_variation = variation;
      moe.capacity_factor = capacity;
      EXPECT_NEAR(expert_rows_ratio(moe), kept_share(capacity, variation), 1e-7)
          << variation << ' ' << capacity;
    }
  }
  moe.balanced_routing = true;
  moe.capacity_factor = 0.75;
  EXPECT_EQ(expert_rows_ratio(moe), 0.75);
}

TEST(ExpertCapacity, PaddedRowsAreAsManyAsItAllowsOnEveryRank) {
  ModelSpec model = sparse_model();
  model.moe->capacity_factor = 1.25;
  model.moe->pads_to_capacity = true;
  EXPECT_EQ(expert_rows_ratio(*model.moe), 1.25);
  EXPECT_EQ(load_of(model, 64), 1.0);
}

// The fullest rank works on no more than its experts may take, and on no more than without a
// capacity; a capacity that nobody reaches changes nothing.
TEST(ExpertCapacity, LimitsTheFullestRank) {
  for (const std::int64_t ep : {2, 16, 128}) {
    ModelSpec model = sparse_model();
    model.moe->load_variation = 0.5;
    const double unlimited = load_of(model, ep);
    double before = 0.0;
    for (const double capacity : {0.25, 0.75, 1.0, 1.25, 1.5, 2.0, 8.0}) {
      model.moe->capacity_factor = capacity;
      const double load = load_of(model, ep), rows = load * expert_rows_ratio(*model.moe);
      EXPECT_GE(load, 1.0) << ep << ' ' << capacity;
      EXPECT_LE(rows, capacity) << ep << ' ' << capacity;
      EXPECT_LE(rows, unlimited + 1e-12) << ep << ' ' << capacity;
      EXPECT_GE(rows, before) << ep << ' ' << capacity;
      before = rows;
    }
    EXPECT_NEAR(before, unlimited, 1e-9) << ep;
  }
}

// No rank gets more than all tokens.
TEST(ExpertLoad, IsAtMostTheNumberOfRanks) {
  ModelSpec model = sparse_model();
  model.moe->load_variation = 1.0;
  for (const std::int64_t ep : {2, 16, 128}) EXPECT_LE(load_of(model, ep), static_cast<double>(ep));
}

}  // namespace
}  // namespace shardwright
