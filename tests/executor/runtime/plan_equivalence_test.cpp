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
  if (kSanitized) options.steps = 5;
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

class PlanEquivalence : public testing::TestWithParam<PlanCase> {};

TEST_P(PlanEquivalence, LossesAreThoseOfOneRank) {
  const ModelSpec model = GetParam().model();
  Plan plan = one_rank_plan();
  GetParam().change(plan);
  ASSERT_TRUE(broken_rules(model, nullptr, plan).empty());
  const std::vector<double> losses = train(model, plan, curve());
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
  for (const ModelSpec& model : {small_gpt2(), small_qwen3(), small_deepseek_v3()})
    expect_near(model, plan);
  plan.tp = plan.dp = 2;
  plan.zero_stage = 1;
  expect_near(small_gpt2(), plan);
  plan.tp = 1;
  plan.cp = plan.pp = 2;
  plan.zero_stage = 3;
  plan.context_parallel = ContextParallelKind::Ring;
  expect_near(small_deepseek_v3(), plan);
}

// A validation on the batch of the next step gives the loss of that step, and leaves no trace in
// it.
TEST_P(PlanEquivalence, ValidationChangesNothing) {
  const ModelSpec model = GetParam().model();
  Plan plan = one_rank_plan();
  GetParam().change(plan);
  if (plan.replicas != ReplicaAgreement()) return;
  TrainingOptions options = kTwentySteps;
  options.steps = 3;
  const std::vector<double> undisturbed = train(model, plan, options);
  std::vector<double> losses, validated;
  on_ranks(model, plan, options, [&](RankTrainer& trainer, const BatchLoader& loader) {
    for (std::int64_t step = 0; step < options.steps; ++step) {
      const auto first = static_cast<std::uint64_t>(step * plan.global_batch);
      const Batch batch =
          loader.load(first, trainer.place()[Axis::Data], trainer.place()[Axis::Context]);
      const double validation = trainer.validation_loss(batch);
      const double loss = trainer.step(step, batch).loss;
      if (trainer.rank() != 0) continue;
      validated.push_back(validation);
      losses.push_back(loss);
    }
  });
  EXPECT_EQ(losses, undisturbed);
  EXPECT_EQ(validated, losses);
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

INSTANTIATE_TEST_SUITE_P(Plans, PlanEquivalence, testing::ValuesIn(plan_cases()),
                         [](const auto& plan) { return plan.param.name; });

}  // namespace
}  // namespace shardwright::executor
