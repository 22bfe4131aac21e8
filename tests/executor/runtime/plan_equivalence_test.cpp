// The same seed gives the same loss curve under every plan.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "core/spec/plan_check.hpp"
#include "tests/executor/runtime/training_fixture.hpp"
#include "tests/sanitized.hpp"

namespace shardwright::executor {
namespace {

// Sanitizers look for other faults than rounding, which adds up over steps.
TrainingOptions curve() {
  TrainingOptions options = kTwentySteps;
  options.steps = kSanitized ? 5 : 10;
  return options;
}

const std::vector<double>& one_rank_losses(const ModelSpec& model, std::int64_t seq_len) {
  static std::map<std::pair<std::string, std::int64_t>, std::vector<double>> known;
  std::vector<double>& losses = known[{model.name, seq_len}];
  Plan plan = one_rank_plan();
  plan.seq_len = seq_len;
  if (losses.empty()) losses = train(model, plan, curve());
  return losses;
}

// Initially all tokens are equally likely, so the loss is near ln(vocabulary); the words of the
// text are learnt soon.
TEST(OneRank, LearnsAText) {
  for (const ModelSpec& model : {small_llama(), small_gpt2(), small_mixtral()}) {
    const std::vector<double> losses =
        train(model, one_rank_plan(), {.steps = 60, .learning_rate = 1e-2});
    EXPECT_NEAR(losses.front(), std::log(static_cast<double>(model.vocab)), 0.1) << model.name;
    EXPECT_LT(losses.back(), 2.2) << model.name;
  }
}

struct Curve {
  std::vector<double> losses;
  // The validation losses on the batches of the first steps, each before its step.
  std::vector<double> validated;
};

Curve train_and_validate(const ModelSpec& model, const Plan& plan, const TrainingOptions& options,
                         std::int64_t validated_steps) {
  Curve curve;
  on_ranks(model, plan, options, [&](RankTrainer& trainer, const BatchLoader& loader) {
    for (std::int64_t step = 0; step < options.steps; ++step) {
      const auto first = static_cast<std::uint64_t>(step * plan.global_batch);
      const Batch batch =
          loader.load(first, trainer.place()[Axis::Data], trainer.place()[Axis::Context]);
      const bool validates = step < validated_steps;
      const double validation = validates ? trainer.validation_loss(batch) : 0.0;
      const double loss = trainer.step(step, batch).loss;
      if (trainer.rank() != 0) continue;
      if (validates) curve.validated.push_back(validation);
      curve.losses.push_back(loss);
    }
  });
  return curve;
}

class PlanEquivalence : public testing::TestWithParam<PlanCase> {};

// A validation on the batch of the next step gives the loss of that step.
TEST_P(PlanEquivalence, LossesAreThoseOfOneRank) {
  const ModelSpec model = GetParam().model();
  Plan plan = one_rank_plan();
  GetParam().change(plan);
  ASSERT_TRUE(broken_rules(model, nullptr, plan).empty());
  const auto [losses, validated] = train_and_validate(model, plan, curve(), 1);
  EXPECT_EQ(validated.front(), losses.front());
  const std::vector<double>& expected = one_rank_losses(model, plan.seq_len);
  ASSERT_EQ(losses.size(), static_cast<std::size_t>(curve().steps));
  double worst = 0.0;
  for (std::size_t step = 0; step < losses.size(); ++step)
    worst = std::max(worst, std::abs(losses[step] / expected[step] - 1.0));
  EXPECT_LE(worst, 1e-5);
  RecordProperty("worst_relative_difference", fmt::format("{:.1e}", worst));
}

// bf16 has 8 significant bits, and ranks add rounded parts in another order.
TEST(PlansInBf16, FollowOneRankInFp32) {
  TrainingOptions options = curve();
  const auto expect_near = [&](const ModelSpec& model, const Plan& plan) {
    const std::vector<double> losses = train(model, plan, options);
    const std::vector<double>& expected = one_rank_losses(model, plan.seq_len);
    EXPECT_NEAR(losses.front() / expected.front(), 1.0, 0.005) << model.name;
    for (std::size_t step = 0; step < losses.size(); ++step)
      EXPECT_NEAR(losses[step] / expected[step], 1.0, 0.02) << model.name << " step " << step;
  };
  Plan plan = one_rank_plan();
  plan.precision = Precision::Bf16;
  plan.micro_batch = 2;
  for (const ModelSpec& model :
       {small_gpt2(), small_qwen3(), small_deepseek_v3(), small_qwen2_moe()})
    expect_near(model, plan);
  plan.tp = plan.dp = 2;
  plan.zero_stage = 1;
  expect_near(small_gpt2(), plan);
  plan.tp = 1;
  plan.cp = plan.pp = 2;
  plan.zero_stage = 3;
  plan.context_parallel = ContextParallelKind::Ring;
  expect_near(small_deepseek_v3(), plan);
  plan.cp = plan.pp = 1;
  plan.tp = plan.dp = plan.ep = plan.expert_tp = 2;
  plan.zero_stage = 1;
  expect_near(small_deepseek_v2(), plan);
  expect_near(small_qwen2_moe(), plan);
}

// What runs again computes the same, from rotary keys that tensor-parallel ranks have kept.
TEST(Recomputation, OfProjectionsUpChangesNoBit) {
  TrainingOptions options = kTwentySteps;
  options.steps = 3;
  Plan plan = one_rank_plan();
  plan.tp = plan.pp = plan.micro_batch = 2;
  const std::vector<double> expected = train(small_deepseek_v3(), plan, options);
  plan.recompute = RecomputePolicy::Selective;
  plan.recompute_modules = {RecomputeModule::MlaUpProjection};
  EXPECT_EQ(train(small_deepseek_v3(), plan, options), expected);
}

// Validations leave no trace in the steps after them.
class ValidatedPlan : public testing::TestWithParam<PlanCase> {};

TEST_P(ValidatedPlan, TrainsBitForBitAsOneThatIsNot) {
  const ModelSpec model = GetParam().model();
  Plan plan = one_rank_plan();
  GetParam().change(plan);
  TrainingOptions options = kTwentySteps;
  options.steps = 3;
  const Curve curve = train_and_validate(model, plan, options, options.steps);
  EXPECT_EQ(curve.losses, train(model, plan, options));
  EXPECT_EQ(curve.validated, curve.losses);
}

// The loss of a sequence does not depend on the ranks and microbatches that it is split over.
TEST(BalanceLoss, ChangesTheGradientAlikeUnderEveryPlan) {
  TrainingOptions options = kTwentySteps;
  options.steps = 4;
  const ModelSpec model = small_mixtral();
  const std::vector<double> without = train(model, one_rank_plan(), options);
  options.balance_loss = 0.1;
  const std::vector<double> expected = train(model, one_rank_plan(), options);
  Plan plan = one_rank_plan();
  plan.tp = plan.ep = plan.dp = plan.micro_batch = 2;
  const std::vector<double> losses = train(model, plan, options);
  EXPECT_EQ(expected.front(), without.front());
  EXPECT_NE(expected.back(), without.back());
  for (std::size_t step = 0; step < losses.size(); ++step)
    EXPECT_NEAR(losses[step] / expected[step], 1.0, 1e-5);
}

std::vector<PlanCase> every_sixth_case() {
  std::vector<PlanCase> chosen;
  for (std::size_t i = 0; i < plan_cases().size(); i += 6) chosen.push_back(plan_cases()[i]);
  return chosen;
}

std::string case_name(const testing::TestParamInfo<PlanCase>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Plans, PlanEquivalence, testing::ValuesIn(plan_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Plans, ValidatedPlan, testing::ValuesIn(every_sixth_case()), case_name);

}  // namespace
}  // namespace shardwright::executor
