// The same seed gives the same loss curve under every plan.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/spec/plan_check.hpp"
#include "tests/executor/runtime/training_fixture.hpp"

namespace shardwright::executor {
namespace {

const std::vector<double>& one_rank_losses(bool gpt2) {
  static std::map<bool, std::vector<double>> known;
  if (known.count(gpt2) == 0) {
    known[gpt2] = train(gpt2 ? small_gpt2() : small_llama(), one_rank_plan(), kTwentySteps);
  }
  return known[gpt2];
}

// Initially all tokens are equally likely, so the loss is near ln(vocabulary); the words of the
// text are learnt soon.
TEST(OneRank, LearnsAText) {
  for (const ModelSpec& model : {small_llama(), small_gpt2()}) {
    const std::vector<double> losses =
        train(model, one_rank_plan(), {.steps = 60, .learning_rate = 1e-2});
    EXPECT_NEAR(losses.front(), std::log(static_cast<double>(model.vocab)), 0.1) << model.name;
    EXPECT_LT(losses.back(), 2.2) << model.name;
  }
}

class PlanEquivalence : public testing::TestWithParam<PlanCase> {};

TEST_P(PlanEquivalence, LossesAreThoseOfOneRank) {
  const ModelSpec model = GetParam().gpt2 ? small_gpt2() : small_llama();
  Plan plan = one_rank_plan();
  GetParam().change(plan);
  ASSERT_TRUE(broken_rules(model, nullptr, plan).empty());
  const std::vector<double> losses = train(model, plan, kTwentySteps);
  const std::vector<double>& expected = one_rank_losses(GetParam().gpt2);
  ASSERT_EQ(losses.size(), 20U);
  double worst = 0.0;
  for (std::size_t step = 0; step < losses.size(); ++step)
    worst = std::max(worst, std::abs(losses[step] / expected[step] - 1.0));
  EXPECT_LE(worst, 1e-5);
  RecordProperty("worst_relative_difference", fmt::format("{:.1e}", worst));
}

INSTANTIATE_TEST_SUITE_P(Plans, PlanEquivalence, testing::ValuesIn(plan_cases()),
                         [](const auto& plan) { return plan.param.name; });

}  // namespace
}  // namespace shardwright::executor
