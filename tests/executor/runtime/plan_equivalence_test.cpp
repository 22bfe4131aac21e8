// The same seed gives the same loss curve under every plan.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "core/spec/plan_check.hpp"
#include "tests/executor/runtime/training_fixture.hpp"

namespace shardwright::executor {
namespace {

struct PlanCase {
  std::string name;
  bool gpt2 = false;
  std::function<void(Plan&)> change;
};

void PrintTo(const PlanCase& plan, std::ostream* out) {
  *out << plan.name;
}

const std::vector<PlanCase>& plan_cases() {
  static const std::vector<PlanCase> cases = {
      {"dp2", false, [](Plan& p) { p.dp = 2; }},
      {"dp4_zero1", false, [](Plan& p) { p.dp = 4, p.zero_stage = 1; }},
      {"dp2_zero1_gathers_after", true,
       [](Plan& p) { p.dp = 2, p.zero_stage = 1, p.overlap.param_gather = false; }},
      {"tp2", true, [](Plan& p) { p.tp = 2, p.micro_batch = 2; }},
      {"tp2_without_sp", false,
       [](Plan& p) { p.tp = p.micro_batch = 2, p.sequence_parallel = false; }},
      {"tp4_recompute", true,
       [](Plan& p) { p.tp = p.micro_batch = 4, p.recompute = RecomputePolicy::Full; }},
      {"pp4_gpipe", false, [](Plan& p) { p.pp = 4, p.schedule = ScheduleKind::GPipe; }},
      {"pp4_1f1b", true, [](Plan& p) { p.pp = 4; }},
      {"pp2_interleaved", false,
       [](Plan& p) { p.pp = 2, p.vpp = 2, p.schedule = ScheduleKind::Interleaved; }},
      {"dp2_tp2_pp2_zero1", true,
       [](Plan& p) { p.dp = p.tp = p.pp = p.micro_batch = 2, p.zero_stage = 1; }},
      {"dp2_tp2_pp2", false,
       [](Plan& p) { p.dp = p.tp = p.pp = 2, p.recompute = RecomputePolicy::Full; }},
      {"tp2_pp2_interleaved_dp2_zero1", false,
       [](Plan& p) {
         p.dp = p.tp = p.pp = p.vpp = 2, p.zero_stage = 1;
         p.schedule = ScheduleKind::Interleaved;
         p.rank_order = {Axis::Data, Axis::Pipeline, Axis::Tensor, Axis::Context, Axis::Expert};
       }},
  };
  return cases;
}

TrainingOptions twenty_steps() {
  TrainingOptions options;
  options.steps = 20;
  options.learning_rate = 3e-3;
  options.warmup_steps = 5;
  return options;
}

const std::vector<double>& one_rank_losses(bool gpt2) {
  static std::map<bool, std::vector<double>> known;
  if (known.count(gpt2) == 0) {
    known[gpt2] = train(gpt2 ? small_gpt2() : small_llama(), one_rank_plan(), twenty_steps());
  }
  return known[gpt2];
}

class PlanEquivalence : public testing::TestWithParam<PlanCase> {};

TEST_P(PlanEquivalence, LossesAreThoseOfOneRank) {
  const ModelSpec model = GetParam().gpt2 ? small_gpt2() : small_llama();
  Plan plan = one_rank_plan();
  GetParam().change(plan);
  ASSERT_TRUE(check_plan(model, plan).empty());
  const std::vector<double> losses = train(model, plan, twenty_steps());
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
