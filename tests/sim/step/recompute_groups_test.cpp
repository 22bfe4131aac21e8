// Full recomputation in groups and intervals of layers and by stage: what runs again, what is kept,
// and how the step and its memory follow.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/lowering/lowering.hpp"
#include "core/program/validate.hpp"
#include "sim/step/analytic.hpp"
#include "sim/step/fidelity.hpp"
#include "sim/step/simulate.hpp"
#include "tests/core/program/volumes.hpp"
#include "tests/sim/step/random_scenario.hpp"

namespace shardwright::sim {
namespace {

// 16 layers on one stage; GPipe holds the activations of all microbatches.
Scenario recomputed(std::int64_t interval, std::int64_t group, std::int64_t microbatches = 4) {
  Scenario scenario = fixtures::small_scenario(2, 2, 1);
  Plan& plan = scenario.plan;
  plan.schedule = ScheduleKind::GPipe;
  plan.global_batch = microbatches * plan.dp;
  plan.recompute = RecomputePolicy::Full;
  plan.recompute_interval = interval;
  plan.recompute_group = group;
  return scenario;
}

Flop rerun_flop(const Scenario& scenario) {
  const Program program = lower(scenario.model, scenario.plan, scenario.stack);
  EXPECT_TRUE(validate(program).empty());
  return volumes(program).front().flop[index_of(Phase::Recompute)];
}

Bytes peak(const Scenario& scenario) {
  return simulate_step(scenario).memory().peak;
}

// What a further microbatch takes, without fragmentation.
Bytes kept_of_microbatch(std::int64_t interval, std::int64_t group) {
  const double reserved = 1.0 + recomputed(1, 1).stack.memory.fragmentation;
  return (peak(recomputed(interval, group, 8)) - peak(recomputed(interval, group, 4))) /
         (4.0 * reserved);
}

// The input of each group: 2 bytes for each of the rank's elements.
TEST(RecomputeGroups, KeepTheInputOfTheirFirstLayer) {
  const Scenario each = recomputed(1, 1);
  const double input = 2.0 * static_cast<double>(each.model.hidden * each.plan.seq_len / 2);
  const Bytes by_one = kept_of_microbatch(1, 1);
  for (const std::int64_t group : {2, 3, 4, 5, 8, 16}) {
    const double fewer = 16.0 - std::ceil(16.0 / static_cast<double>(group));
    EXPECT_NEAR((by_one - kept_of_microbatch(1, group)).value(), fewer * input, 1.0) << group;
  }
}

// The forward pass of every layer runs again once, so the step is as long; the layers of a group
// are held together meanwhile: of one of all layers as much as without recomputation.
TEST(RecomputeGroups, RunAllLayersAgainAndHoldTheGroup) {
  const Scenario each = recomputed(1, 1, 1);
  const StepResult alone = simulate_step(each);
  Bytes before;
  for (const std::int64_t group : {2, 3, 4, 5, 8, 16}) {
    const Scenario grouped = recomputed(1, group, 1);
    EXPECT_DOUBLE_EQ(rerun_flop(grouped).value(), rerun_flop(each).value()) << group;
    const StepResult result = simulate_step(grouped);
    EXPECT_NEAR(result.step / alone.step, 1.0, 0.001) << group;
    if (group < 4) continue;  // the loss needs more
    EXPECT_GT(result.memory().peak, before) << "with one microbatch: group " << group;
    before = result.memory().peak;
  }
  Scenario none = each;
  none.plan.recompute = RecomputePolicy::None;
  EXPECT_GT(before, alone.memory().peak);
  // The logits are gone by then.
  EXPECT_LT(before, peak(none));
  EXPECT_GT(before, peak(none) * 0.9);
}

// Without a second layer in a chunk there are no groups.
TEST(RecomputeGroups, OfOneLayerAreFullRecomputation) {
  Scenario single = recomputed(1, 1);
  single.plan.pp = 16;
  single.plan.schedule = ScheduleKind::OneFOneB;
  Scenario grouped = single;
  grouped.plan.recompute_group = 4;
  EXPECT_EQ(simulate_step(single).step, simulate_step(grouped).step);
  EXPECT_EQ(peak(single), peak(grouped));
}

// FSDP gathers the parameters of a group before it runs again, and holds them.
TEST(RecomputeGroups, HoldTheParametersOfTheGroup) {
  Scenario alone = recomputed(1, 1, 1);
  alone.plan.tp = 1;
  alone.plan.zero_stage = 3;
  Scenario grouped = alone;
  grouped.plan.recompute_group = 4;
  const Program program = lower(grouped.model, grouped.plan, grouped.stack);
  EXPECT_TRUE(validate(program).empty());
  EXPECT_GT(peak(grouped), peak(alone));
  EXPECT_NEAR(simulate_step(grouped).step / simulate_step(alone).step, 1.0, 0.05);
}

TEST(RecomputeIntervals, RunTheirShareOfTheLayersAgain) {
  const double all = rerun_flop(recomputed(1, 1)).value();
  Scenario none = recomputed(1, 1);
  none.plan.recompute = RecomputePolicy::None;
  Bytes memory = peak(recomputed(1, 1));
  Seconds step = simulate_step(recomputed(1, 1)).step;
  for (const std::int64_t interval : {2, 3, 4, 8, 16}) {
    const Scenario scenario = recomputed(interval, 1);
    EXPECT_NEAR(rerun_flop(scenario).value(), all * static_cast<double>(16 / interval) / 16.0,
                all * 1e-9);
    const StepResult result = simulate_step(scenario);
    EXPECT_GT(result.memory().peak, memory) << interval;
    EXPECT_LT(result.step, step) << interval;
    memory = result.memory().peak;
    step = result.step;
  }
  EXPECT_LT(memory, peak(none));
}

// Four layers for each of four stages.
Scenario by_stage(std::vector<std::int64_t> layers) {
  Scenario scenario = recomputed(1, 1);
  scenario.plan.pp = 4;
  scenario.plan.schedule = ScheduleKind::OneFOneB;
  scenario.plan.stage_recompute_layers = std::move(layers);
  return scenario;
}

TEST(RecomputationByStage, IsThatOfAllStagesWhereTheyRecomputeAsMany) {
  Scenario all = by_stage({});
  for (const std::int64_t layers : {1, 3, 4}) {
    all.plan.recompute_layers = layers;
    const Scenario each = by_stage({layers, layers, layers, layers});
    const StepResult expected = simulate_step(all), found = simulate_step(each);
    EXPECT_EQ(found.step, expected.step);
    EXPECT_EQ(found.memory().peak, expected.memory().peak);
    EXPECT_EQ(estimate_step(each).analytic, estimate_step(all).analytic);
    EXPECT_EQ(simulate_at(each, Fidelity::Full).result.step,
              simulate_at(all, Fidelity::Full).result.step);
  }
  Scenario none = by_stage({});
  none.plan.recompute = RecomputePolicy::None;
  EXPECT_EQ(simulate_step(by_stage({0, 0, 0, 0})).step, simulate_step(none).step);
  EXPECT_EQ(peak(by_stage({0, 0, 0, 0})), peak(none));
}

// A layer more of one stage runs again there for each microbatch, and its stage keeps less; nothing
// changes on the others.
TEST(RecomputationByStage, ChangesItsOwnStageAlone) {
  for (std::size_t stage = 0; stage < 4; ++stage) {
    std::vector<std::int64_t> layers = {2, 1, 0, 2};
    const StepResult before = simulate_step(by_stage(layers));
    const Scenario scenario = by_stage(layers);
    const Program program = lower(scenario.model, scenario.plan, scenario.stack);
    ++layers[stage];
    const StepResult after = simulate_step(by_stage(layers));
    const Program changed = lower(scenario.model, by_stage(layers).plan, scenario.stack);
    EXPECT_TRUE(validate(changed).empty());
    EXPECT_GE(after.step, before.step);
    for (std::size_t other = 0; other < 4; ++other) {
      const auto rerun = [other](const Program& of) {
        return volumes(of)[other].flop[index_of(Phase::Recompute)].value();
      };
      if (other != stage) {
        EXPECT_EQ(rerun(changed), rerun(program));
        EXPECT_EQ(after.stages[other].memory.peak, before.stages[other].memory.peak);
        continue;
      }
      EXPECT_GT(rerun(changed), rerun(program));
      EXPECT_LT(after.stages[other].memory.peak, before.stages[other].memory.peak);
    }
  }
}

}  // namespace
}  // namespace shardwright::sim
