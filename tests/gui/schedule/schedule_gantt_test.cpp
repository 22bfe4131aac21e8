#include "gui/schedule/schedule_gantt.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "gui/schedule/stage_durations.hpp"
#include "tests/core/schedule/schedule_cases.hpp"
#include "tests/gui/example_step.hpp"
#include "tests/sim/step/random_scenario.hpp"

namespace shardwright::gui {
namespace {

using gui::testing::small_step;
using gui::testing::step_of;

// Every microbatch passes each part of the model once forward and once backward, in one go or in
// halves, whatever the schedule.
TEST(ScheduleGantt, EveryKindHasEachMicrobatchOnce) {
  for (const ScheduleKind kind : all_kinds()) {
    for (const ScheduleCase& c : cases_of(kind)) {
      if (c.shape.microbatches > 16) continue;
      const ScheduleGantt gantt(kind, c.shape, even_times(kind, c.shape));
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

// Busy and idle time make up the whole; boxes of a stage do not overlap unless they are a pair.
TEST(ScheduleGantt, StagesAreBusyOrWait) {
  for (const ScheduleKind kind : all_kinds()) {
    for (const ScheduleCase& c : cases_of(kind)) {
      if (c.shape.microbatches > 12) continue;
      const ScheduleGantt gantt(kind, c.shape, even_times(kind, c.shape));
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

// (p - 1) / (m + p - 1), arXiv 2104.04473 section 2.2.
TEST(ScheduleGantt, BubbleOf1F1BIsThePublishedOne) {
  const ScheduleShape shape{8, 1, 24};
  const ScheduleGantt gantt(ScheduleKind::OneFOneB, shape,
                            even_times(ScheduleKind::OneFOneB, shape));
  EXPECT_NEAR(gantt.bubble(), 7.0 / 31.0, 1e-12);
}

TEST(ScheduleGantt, EventsLeadThroughTheWholeAndBack) {
  const ScheduleShape shape{4, 1, 6};
  const ScheduleGantt gantt(ScheduleKind::ZbH1, shape, even_times(ScheduleKind::ZbH1, shape));
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
  EXPECT_TRUE(
      ScheduleGantt(ScheduleKind::DualPipe, odd, even_times(ScheduleKind::DualPipe, odd)).empty());
}

// A stage's slots fill no more than the time that its compute stream was occupied, and with the
// durations of its own timeline the schedule takes about as long as the simulated step.
TEST(StageDurations, AreThoseOfTheTimeline) {
  const auto& step = small_step();
  const auto times = stage_durations(*step.timeline, step.scenario.model, step.scenario.plan);
  ASSERT_TRUE(times.has_value());
  double end = 0.0;
  for (const Span& span : step.timeline->spans) end = std::max(end, span.end().value());
  const ScheduleGantt gantt(step.scenario.plan.schedule, shape_of(step.scenario.plan), *times);
  EXPECT_LT(gantt.makespan(), end);
  EXPECT_GT(gantt.makespan(), 0.85 * end);
  Timeline first_stage = *step.timeline;
  first_stage.ranks.pop_back();
  EXPECT_FALSE(stage_durations(first_stage, step.scenario.model, step.scenario.plan).has_value());
}

TEST(StageDurations, ExistForEveryKindOfStep) {
  EXPECT_TRUE(rc::check([] {
    const auto step = step_of(sim::testing::any_small_scenario());
    const Plan& plan = step.scenario.plan;
    const auto times = stage_durations(*step.timeline, step.scenario.model, plan);
    RC_ASSERT(times.has_value());
    double end = 0.0;
    for (const Span& span : step.timeline->spans) end = std::max(end, span.end().value());
    for (const auto& of_stage : *times) {
      RC_ASSERT(of_stage.size() ==
                static_cast<std::size_t>(chunks_held(plan.schedule, shape_of(plan))));
      double sum = 0.0;
      for (const ChunkTimes& chunk : of_stage)
        sum += (chunk.forward + chunk.backward_input + chunk.backward_weight).value();
      const double each = plan.schedule == ScheduleKind::DualPipe ? 0.5 : 1.0;
      RC_ASSERT(sum * each * static_cast<double>(plan.microbatches()) <= end * (1.0 + 1e-9));
    }
  }));
}

TEST(StageDurations, AreNoneWithoutSpans) {
  EXPECT_FALSE(
      stage_durations(Timeline(), small_step().scenario.model, small_step().scenario.plan));
}

}  // namespace
}  // namespace shardwright::gui
