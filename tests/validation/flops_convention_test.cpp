// The conventions by which sources count the FLOP behind a published TFLOP/s or MFU.
#include "validation/flops_convention.hpp"

#include <gtest/gtest.h>

#include "tests/validation/shipped_measurements.hpp"

namespace shardwright::validation {
namespace {

// Equation 3 of arXiv 2104.04473 for the 1.7B model of its table 1:
// F = 96 B s l h^2 (1 + s / (6 h) + V / (16 l h)).
TEST(FlopsConvention, CountsRecomputationAsMegatronDoes) {
  const Measurement row = shipped("sc21", "sc21-t1-1.7b");
  const double batch = 512, s = 2048, l = 24, h = 2304, v = 51200;
  const double formula = 96 * batch * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  EXPECT_EQ(row.figure->flops.recomputation, CountedRecomputation::Whole);
  const Flop counted = counted_flop(row.scenario->model, row.scenario->plan, row.figure->flops);
  EXPECT_NEAR(counted.value() / formula, 1.0, 1e-3);
}

TEST(FlopsConvention, CausalAttentionIsHalfOfItsScores) {
  const Scenario scenario = *shipped("sc21", "sc21-t1-1.7b").scenario;
  const auto counted = [&](double share) {
    return counted_flop(scenario.model, scenario.plan, {.attention_share = share});
  };
  EXPECT_LT(counted(0.0), counted(0.5));
  EXPECT_NEAR((counted(0.5) - counted(0.0)) / (counted(1.0) - counted(0.0)), 0.5, 1e-9);
}

TEST(FlopsConvention, RecomputationAsRunIsThatOfThePlan) {
  Scenario scenario = *shipped("sc21", "sc21-t1-1.7b").scenario;
  const auto counted = [&](CountedRecomputation recomputation) {
    return counted_flop(scenario.model, scenario.plan, {.recomputation = recomputation});
  };
  scenario.plan.recompute = RecomputePolicy::Full;
  scenario.plan.recompute_layers = 0;
  EXPECT_EQ(counted(CountedRecomputation::AsRun), counted(CountedRecomputation::Whole));
  scenario.plan.recompute = RecomputePolicy::None;
  EXPECT_EQ(counted(CountedRecomputation::AsRun), counted(CountedRecomputation::None));
}

}  // namespace
}  // namespace shardwright::validation
