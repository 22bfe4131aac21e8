#include "gui/schedule/schedule_gantt.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "gui/schedule/schedule_painter.hpp"
#include "sim/step/simulate.hpp"
#include "tests/core/schedule/schedule_cases.hpp"
#include "tests/gui/example_step.hpp"
#include "tests/sim/step/random_scenario.hpp"

namespace shardwright::gui {
namespace {

using gui::fixtures::small_step;
using gui::fixtures::step_of;

// In every schedule each microbatch passes each part of the model once forward and once backward;
// the backward may be split in two.
TEST(ScheduleGantt, EveryKindHasEachMicrobatchOnce) {
  for (const ScheduleKind kind : all_kinds()) {
    for (const ScheduleCase& c : cases_of(kind)) {
      if (c.shape.microbatches > 16) continue;
      const ScheduleGantt gantt(kind, c.shape);
      ASSERT_FALSE(gantt.empty()) << shown(c);
      std::map<std::pair<SlotPhase, std::int32_t>, std::int64_t> count;
      for (std::size_t s = 0; s < gantt.stages().size(); ++s) {
        std::set<std::tuple<SlotPhase, std::int32_t, std::int32_t>> seen;
        for (const GanttBox& box : gantt.stages()[s].boxes) {
          ASSERT_TRUE(seen.insert({box.phase, box.chunk, box.microbatch}).second) << shown(c);
          ++count[{box.phase, box.microbatch}];
        }
      }
      const std::int64_t parts = c.shape.stages * c.shape.chunks;
      for (std::int32_t m = 0; m < c.shape.microbatches; ++m) {
        EXPECT_EQ((count[{SlotPhase::Forward, m}]), parts) << shown(c);
        EXPECT_EQ((count[{SlotPhase::Backward, m}] + count[{SlotPhase::BackwardInput, m}]), parts);
        EXPECT_EQ((count[{SlotPhase::BackwardWeight, m}]), (count[{SlotPhase::BackwardInput, m}]));
      }
    }
  }
}

TEST(ScheduleGantt, ThePhasesOfEveryKindHaveLooksOfTheirOwn) {
  for (const ScheduleKind kind : all_kinds()) {
    for (const ScheduleCase& c : cases_of(kind)) {
      if (c.shape.microbatches > 16) continue;
      const auto legend = legend_of(ScheduleGantt(kind, c.shape));
      std::set<std::pair<Role, Qt::BrushStyle>> looks;
      for (const ScheduleLegendEntry& entry : legend) {
        if (entry.mark != ScheduleMark::Phase) continue;
        EXPECT_TRUE(looks.insert({role_of(entry.phase), hatch_of(entry.phase, legend)}).second)
            << shown(c) << " " << entry.text.toStdString();
      }
    }
  }
}

TEST(ScheduleGantt, ItsSummaryCountsInTheSingularToo) {
  ScheduleShape shape;
  shape.stages = shape.microbatches = 1;
  const auto summary_of = [](const ScheduleShape& of) {
    const ScheduleKind kind = ScheduleKind::OneFOneB;
    return schedule_summary(ScheduleGantt(kind, of)).join(u" · "_s).toStdString();
  };
  EXPECT_THAT(summary_of(shape), ::testing::HasSubstr("1 stage · 1 microbatch · "));
  shape.stages = 2;
  shape.microbatches = 1024;
  EXPECT_THAT(summary_of(shape), ::testing::HasSubstr("2 stages · 1,024 microbatches · "));
}

// Busy and idle time add up to the whole; boxes of a stage do not overlap unless they are a pair.
TEST(ScheduleGantt, StagesAreBusyOrWait) {
  for (const ScheduleKind kind : all_kinds()) {
    for (const ScheduleCase& c : cases_of(kind)) {
      if (c.shape.microbatches > 12) continue;
      const ScheduleGantt gantt(kind, c.shape);
      for (const GanttStage& stage : gantt.stages()) {
        double covered = 0.0, reached = 0.0;
        for (const GanttBox& box : stage.boxes) {
          EXPECT_LE(box.finish, gantt.makespan() + 1e-12);
          if (box.lane != GanttLane::Lower) {
            EXPECT_GE(box.start, reached - 1e-12) << shown(c);
            covered += box.finish - box.start;
          }
          reached = box.finish;
        }
        EXPECT_NEAR(covered, stage.busy, 1e-9) << shown(c);
        EXPECT_NEAR(stage.bubble, 1.0 - covered / gantt.makespan(), 1e-9);
      }
    }
  }
}

// The published bubble is (p - 1) / (m + p - 1) (arXiv 2104.04473, section 2.2).
TEST(ScheduleGantt, BubbleOf1F1BIsThePublishedOne) {
  const ScheduleShape shape{8, 1, 24};
  const ScheduleGantt gantt(ScheduleKind::OneFOneB, shape);
  EXPECT_NEAR(gantt.bubble(), 7.0 / 31.0, 1e-12);
}

TEST(ScheduleGantt, EventsLeadThroughTheWholeAndBack) {
  const ScheduleShape shape{4, 1, 6};
  const ScheduleGantt gantt(ScheduleKind::ZbH1, shape);
  double time = 0.0;
  int steps = 0;
  for (; time < gantt.makespan(); ++steps) {
    const double next = gantt.next_event(time);
    ASSERT_GT(next, time);
    EXPECT_EQ(gantt.previous_event(next), time);
    time = next;
  }
  EXPECT_GT(steps, 10);
  EXPECT_EQ(gantt.next_event(gantt.makespan()), gantt.makespan());
  EXPECT_EQ(gantt.previous_event(0.0), 0.0);
}

TEST(ScheduleGantt, IsEmptyWhereNoScheduleHasTheShape) {
  EXPECT_TRUE(ScheduleGantt().empty());
  const ScheduleShape odd{3, 1, 4};
  EXPECT_TRUE(ScheduleGantt(ScheduleKind::DualPipe, odd).empty());
}

ScheduleGantt gantt_of(const fixtures::ExampleStep& step, const sim::StepResult& result) {
  const Plan& plan = step.scenario.plan;
  const auto times = stage_slots(*step.timeline, step.scenario.model, plan);
  EXPECT_TRUE(times.has_value());
  GanttStep length{result.step.value(), {}, static_cast<std::size_t>(result.bottleneck)};
  for (const sim::StageResult& stage : result.stages)
    length.bubbles.push_back(stage.time.bubble.value());
  return times ? ScheduleGantt(plan.schedule, shape_of(plan), *times, length) : ScheduleGantt();
}

// Two views of one step must not give two lengths or two bubbles.
TEST(StageSlots, TheStepAndItsBubbleAreThoseOfTheSimulation) {
  const sim::StepResult result = sim::simulate_step(small_step().scenario);
  const ScheduleGantt gantt = gantt_of(small_step(), result);
  EXPECT_NEAR(gantt.makespan(), result.step.value(), 1e-12);
  EXPECT_NEAR(gantt.bubble(), result.time().bubble / result.step, 1e-12);
  // The bubbles of other stages may be several times as long.
  const std::string summary = schedule_summary(gantt).join(u" · "_s).toStdString();
  EXPECT_THAT(summary, ::testing::EndsWith(" % in stage " + std::to_string(result.bottleneck) +
                                           ", the busiest"));
  Timeline first_stage = *small_step().timeline;
  first_stage.ranks.pop_back();
  EXPECT_FALSE(stage_slots(first_stage, small_step().scenario.model, small_step().scenario.plan)
                   .has_value());
}

// A box contains the ops of its pass; boxes follow each other in the schedule's order.
TEST(StageSlots, AreOrderedInEveryKindOfStep) {
  EXPECT_TRUE(rc::check([] {
    const auto step = step_of(sim::fixtures::any_small_scenario());
    const sim::StepResult result = sim::simulate_step(step.scenario);
    const ScheduleGantt gantt = gantt_of(step, result);
    RC_ASSERT(!gantt.empty());
    RC_ASSERT(gantt.makespan() <= result.step.value() * (1.0 + 1e-9));
    for (const GanttStage& stage : gantt.stages()) {
      double reached = 0.0;
      for (const GanttBox& box : stage.boxes) {
        RC_ASSERT(box.finish >= box.start);
        if (box.lane != GanttLane::Lower) RC_ASSERT(box.start >= reached);
        reached = box.lane == GanttLane::Upper ? box.start : box.finish;
      }
      RC_ASSERT(stage.busy <= gantt.makespan() * (1.0 + 1e-9));
    }
  }));
}

// If the ends of the model count as layers, one chunk may hold only the embedding and one only the
// head.
TEST(StageSlots, ChunksOfTheEndsAloneHaveTheirSlots) {
  Scenario scenario = small_step().scenario;
  Plan& plan = scenario.plan;
  scenario.model.layers = 6;
  plan.schedule = ScheduleKind::Interleaved;
  plan.vpp = 4;
  plan.global_batch = 32;
  plan.embedding_counts_as_layer = plan.head_counts_as_layer = true;
  for (const std::int64_t cp : {1, 2}) {
    plan.cp = cp;
    plan.tp = 4 / cp;
    const auto step = step_of(scenario);
    const ScheduleGantt gantt = gantt_of(step, sim::simulate_step(scenario));
    ASSERT_FALSE(gantt.empty()) << cp;
    EXPECT_NEAR(gantt.makespan(), sim::simulate_step(scenario).step.value(), 1e-12);
  }
}

TEST(StageSlots, AreNoneWithoutSpans) {
  EXPECT_FALSE(stage_slots(Timeline(), small_step().scenario.model, small_step().scenario.plan));
}

}  // namespace
}  // namespace shardwright::gui
