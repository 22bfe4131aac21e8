// How sources count the FLOP behind a published TFLOP/s or MFU.
#include "sim/validation/flops_convention.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "sim/validation/row_scenario.hpp"
#include "sim/validation/validation.hpp"
#include "tests/sim/validation/shipped_rows.hpp"

namespace shardwright::sim {
namespace {

// Equation 3 of arXiv 2104.04473 for the 1.7B model of its table 1:
// F = 96 B s l h^2 (1 + s / (6 h) + V / (16 l h)).
TEST(FlopsConvention, CountsRecomputationAsMegatronDoes) {
  const TrainingRow row = shipped_row("sc21-t1-1.7b");
  const auto result = scenario_of(row);
  ASSERT_TRUE(result.scenario);
  const double batch = 512, s = 2048, l = 24, h = 2304, v = 51200;
  const double formula = 96 * batch * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  const Flop counted = counted_flop(result.scenario->model, result.scenario->plan,
                                    flops_convention_in(row.flops_convention));
  EXPECT_NEAR(counted.value() / formula, 1.0, 1e-3);
}

TEST(FlopsConvention, ReadsTheTexts) {
  for (const auto& [text, share] : {std::pair{"", 1.0},
                                    {"FULL (non-causal) attention", 1.0},
                                    {"causal or full attention not stated", 1.0},
                                    {"non causal", 1.0},
                                    {"not causal", 1.0},
                                    {"causal mask ignored", 1.0},
                                    {"causal attention counted in full", 1.0},
                                    {"PaLM: 6*N + 12*L*h*s per token", 1.0},
                                    {"6ND + 12 L H Q T", 1.0},
                                    {"no attention recomputation", 1.0},
                                    {"attention counted CAUSAL (halved)", 0.5},
                                    {"model FLOPs, causal, no recompute", 0.5},
                                    {"6*N*tokens only, NO attention-score FLOPs", 0.0},
                                    {"6ND", 0.0},
                                    {"6 × N × T", 0.0},
                                    {"no attention FLOPs", 0.0},
                                    {"attention FLOPs ignored", 0.0}})
    EXPECT_EQ(flops_convention_in(text).attention_share, share) << text;
}

TEST(FlopsConvention, TellsHardwareFlopFromThoseOfTheModel) {
  using enum CountedRecomputation;
  for (const auto& [text, counted] : {std::pair{"", None},
                                      {"model FLOPs, no recompute", None},
                                      {"no recompute counted", None},
                                      {"without recompute counted", None},
                                      {"recomputation not counted", None},
                                      {"MFU; HFU in source = 4/3 MFU with checkpointing", None},
                                      {"72 B s L h^2 (1 + s / 6h), model FLOPs", None},
                                      {"HFU", AsRun},
                                      {"hardware FLOPs", AsRun},
                                      {"hardware TFLOPs with activation recompute", AsRun},
                                      {"recompute included", AsRun},
                                      {"includes recomputation", AsRun},
                                      {"8*N*tokens with recompute, 6*N*tokens without", AsRun},
                                      {"with activation recompute counted (4 passes)", Whole},
                                      {"8*N*T", Whole},
                                      {"Megatron formula 96BSLh^2 (1 + s/6h)", Whole}})
    EXPECT_EQ(flops_convention_in(text).recomputation, counted) << text;
}

// A pass over all layers but the head; of half of them where half are recomputed.
TEST(FlopsConvention, HardwareFlopAreThoseThatThePlanRuns) {
  const TrainingRow row = shipped_row("sc21-t1-1.7b");
  const auto result = scenario_of(row);
  ASSERT_TRUE(result.scenario);
  const ModelSpec& model = result.scenario->model;
  Plan plan = result.scenario->plan;
  const auto counted = [&](const char* text) {
    return counted_flop(model, plan, flops_convention_in(text)).value();
  };
  ASSERT_EQ(plan.recompute, RecomputePolicy::Full);
  const double whole = counted("HFU");
  EXPECT_EQ(whole, counted("4 passes"));
  const double fourth = whole - counted("MFU");
  ASSERT_GT(fourth, 0.0);
  plan.recompute_layers = plan.even_chunk(model.layers) / 2;
  EXPECT_NEAR((counted("HFU") - counted("MFU")) / fourth, 0.5, 1e-9);
  plan.recompute = RecomputePolicy::None;
  plan.recompute_layers = 0;
  EXPECT_EQ(counted("HFU"), counted("MFU"));
  EXPECT_EQ(counted("4 passes"), whole);
}

// A rate stands for another time under another convention, so the row says which was meant.
TEST(FlopsConvention, IsListedWithARate) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  ASSERT_EQ(row.target->metric, "tflops_per_gpu");
  row.flops_convention = "6ND";
  EXPECT_THAT(compare_row(row).filled_in,
              ::testing::Contains("FLOP: no attention scores, recomputation not counted"));
  row.target = TargetRow{"step_s", 1.0};
  EXPECT_THAT(compare_row(row).filled_in,
              ::testing::Not(::testing::Contains(::testing::StartsWith("FLOP:"))));
}

}  // namespace
}  // namespace shardwright::sim
