// How much is recomputed, in the words of sources and in a plan.
#include "sim/validation/recompute_words.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <ostream>
#include <utility>

#include "sim/validation/row_scenario.hpp"
#include "tests/sim/validation/shipped_rows.hpp"

namespace shardwright::sim {
namespace {

TEST(RecomputeWords, RecomputationInItsSpellings) {
  using Words = RecomputeWords;
  for (const char* text :
       {"none", "None", "no", "off", "no recompute", "disable", "disabled", "Off (it fits)",
        "without activation checkpointing", "gradient_checkpointing=false", "not used",
        "activation checkpointing: off", "none; FlashAttention recomputes scores"})
    EXPECT_EQ(recompute_in(text), Words{}) << text;
  for (const char* text : {"selective", "Selective (core_attn)"})
    EXPECT_EQ(recompute_in(text), (Words{RecomputePolicy::Selective})) << text;
  for (const char* text :
       {"full", "uniform", "uniform, 1 layer", "true", "activation checkpointing"})
    EXPECT_EQ(recompute_in(text), (Words{RecomputePolicy::Full})) << text;
  for (const char* text : {"block 4", "block (4 layers)", "full on 4 layers"})
    EXPECT_EQ(recompute_in(text), (Words{RecomputePolicy::Full, 4})) << text;
  EXPECT_EQ(recompute_in("block"), (Words{RecomputePolicy::Full}));
  EXPECT_EQ(recompute_in("full, 99999999999999999999 layers"),
            (Words{RecomputePolicy::Full, 1'000'000}));
  for (const char* text : {"attention only", "SAC", "minimal"})
    EXPECT_EQ(recompute_in(text), (Words{RecomputePolicy::Selective})) << text;
  EXPECT_EQ(recompute_in("no full recomputation, selective only"),
            (Words{RecomputePolicy::Selective}));
  for (const char* text : {"every 2 layers", "checkpoint every other layer", "every 2nd layer"})
    EXPECT_EQ(recompute_in(text), (Words{RecomputePolicy::Full, 0, 2})) << text;
  EXPECT_EQ(recompute_in("checkpoint every 4 layers"), (Words{RecomputePolicy::Full, 0, 4}));
  EXPECT_EQ(recompute_in("checkpoint every layer"), (Words{RecomputePolicy::Full}));
  EXPECT_EQ(recompute_in("recomputation not stated"), std::nullopt);
  EXPECT_EQ(recompute_in("recompute mlp"), std::nullopt);
  EXPECT_EQ(recompute_in("some of it"), std::nullopt);
}

// 32 layers; 0 layers: all of a chunk.
struct Part {
  const char* text;
  std::int64_t whole;   // layers recomputed by one stage of 32
  std::int64_t staged;  // by each of four stages of 8
};

void PrintTo(const Part& part, std::ostream* out) {
  *out << part.text;
}

class PartOfTheLayers : public ::testing::TestWithParam<Part> {};

Plan recomputing(const char* text, std::int64_t pp) {
  ModelSpec model;
  model.layers = 32;
  Plan plan;
  plan.pp = pp;
  const auto words = recompute_in(text);
  EXPECT_TRUE(words) << text;
  if (words) set_recompute(*words, model, plan);
  return plan;
}

TEST_P(PartOfTheLayers, IsCountedPerStage) {
  const auto& [text, whole, staged] = GetParam();
  for (const auto& [pp, layers] : {std::pair<std::int64_t, std::int64_t>{1, whole}, {4, staged}}) {
    const Plan plan = recomputing(text, pp);
    EXPECT_EQ(plan.recompute, RecomputePolicy::Full) << text;
    EXPECT_EQ(plan.recompute_layers, layers) << text << " on " << pp << " stages";
  }
  EXPECT_TRUE(recomputes_part_of_layers(text)) << text;
}

// Stages that recompute all of their layers set the step's time where others have some left out.
INSTANTIATE_TEST_SUITE_P(
    Words, PartOfTheLayers,
    ::testing::Values(
        Part{"full except last 4 layers", 28, 0}, Part{"full (last 4 layers excluded)", 28, 0},
        Part{"full, all but the last four layers", 28, 0}, Part{"all layers but the last", 31, 0},
        Part{"full, skipping the first 2 layers", 30, 0},
        Part{"full; the last 8 layers are not recomputed", 24, 0},
        Part{"no recomputation for the last 4 layers, full otherwise", 28, 0},
        Part{"full except the last 2 layers of each stage", 30, 6},
        Part{"none for last stage, full otherwise", 0, 0},
        Part{"selective, full for first 4 layers", 4, 1}, Part{"first 8 layers", 8, 2},
        Part{"full for the first 16 layers", 16, 4}, Part{"last 12 layers", 12, 3},
        Part{"first 2 layers of each stage", 2, 2}, Part{"layers 0-15", 16, 4}, Part{"0.5", 16, 4},
        Part{"recompute ratio 0.25", 8, 2}, Part{"25% of layers", 8, 2},
        Part{"50 percent of the layers", 16, 4}, Part{"half of layers", 16, 4},
        Part{"half the layers", 16, 4}, Part{"a quarter of the layers", 8, 2},
        Part{"recompute 16 of 32 layers", 16, 4}, Part{"16/32 layers", 16, 4},
        Part{"full, 8 out of 32 transformer layers", 8, 2}, Part{"full on 1 of 32 layers", 1, 1}));

TEST(RecomputeWords, WholeAndNothingAreNoParts) {
  for (const char* text :
       {"full", "full (80 layers)", "none", "selective", "block 4", "full (30% overhead)",
        "every 2 layers", "full, half precision", "full on 4 layers"})
    EXPECT_FALSE(recomputes_part_of_layers(text)) << text;
  EXPECT_EQ(recomputing("32 of 32 layers", 1).recompute_layers, 0);
  EXPECT_EQ(recomputing("0% of layers", 1).recompute, RecomputePolicy::None);
  EXPECT_EQ(recomputing("full except the first 32 layers", 1).recompute, RecomputePolicy::None);
  EXPECT_EQ(recomputing("full (80 layers)", 1).recompute_layers, 0);
  EXPECT_EQ(recompute_in("full in the first stage only"), std::nullopt);
}

TEST(RecomputeWords, WhatAPlanCannotSayIsListed) {
  const auto filled_in = [](const char* text, std::int64_t pp) {
    TrainingRow row = shipped_row("sc21-t1-1.7b");
    row.plan.recompute = text;
    row.plan.pp = pp;
    row.plan.dp = *row.plan.dp / pp;
    const RowScenario result = scenario_of(row);
    EXPECT_TRUE(result.scenario) << result.reason;
    return result.filled_in;
  };
  EXPECT_TRUE(any_says(filled_in("full except last 4 layers", 1),
                       "recompute: full on 20 layers of each stage for"));
  EXPECT_TRUE(any_says(filled_in("full except last 4 layers", 2), "left out are not simulated"));
  EXPECT_TRUE(any_says(filled_in("first 8 layers", 2), "even shares"));
  EXPECT_TRUE(any_says(filled_in("selective, full for first 4 layers", 1),
                       "selective recomputation of the other layers: not simulated"));
  EXPECT_TRUE(
      any_says(filled_in("selective on 12 of 24 layers", 1), "selective on all layers for"));
}

}  // namespace
}  // namespace shardwright::sim
