#include <gtest/gtest.h>

#include <QScrollBar>
#include <QTest>
#include <QToolButton>

#include "gui/schedule/schedule_view.hpp"
#include "gui/timeline/timeline_view.hpp"
#include "gui/topology/topology_view.hpp"
#include "gui/window/main_window.hpp"
#include "sim/step/simulate.hpp"
#include "tests/gui/example_step.hpp"
#include "tests/gui/small_scenario.hpp"

namespace shardwright::gui {
namespace {

class LinkedViewsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    window_.resize(1400, 900);
    window_.show();
    window_.selection().show(
        std::make_shared<const PlanSet>(plan_set_of(fixtures::small_step().scenario, u"a plan"_s)));
    window_.raise_view(u"timeline"_s);
    ASSERT_TRUE(wait_for([&] { return !window_.is_busy() && !timeline().tracks().empty(); }));
  }

  TimelineCanvas& timeline() {
    return qobject_cast<TimelineView*>(window_.view(u"timeline"_s))->canvas();
  }
  TopologyCanvas& topology() {
    return qobject_cast<TopologyView*>(window_.view(u"topology"_s))->canvas();
  }
  ScheduleView& schedule() { return *qobject_cast<ScheduleView*>(window_.view(u"schedule"_s)); }

  MainWindow window_;
};

TEST_F(LinkedViewsTest, AnOpShowsItsRankAndItsMoment) {
  const SpanRef ref{0, static_cast<std::uint32_t>(timeline().tracks().all_spans() / 2)};
  timeline().select_op(ref);
  const Span& span = timeline().tracks().span(ref);
  EXPECT_EQ(topology().scene().rank(), span.rank);
  ASSERT_TRUE(schedule().canvas().scene().moment.has_value());
  EXPECT_NEAR(*schedule().canvas().scene().moment, span.start.value(), 1e-9);
  timeline().clear_selection();
  EXPECT_FALSE(topology().scene().rank().has_value());
}

TEST_F(LinkedViewsTest, ASlotSelectsItsTimeAndLoadsTheLinksOfIt) {
  const GanttBox& box = schedule().canvas().gantt().stages().at(1).boxes.at(2);
  schedule().canvas().select({1, 2});
  Q_EMIT schedule().canvas().slot_selected(1, box);
  ASSERT_TRUE(timeline().scene().range.has_value());
  EXPECT_NEAR(timeline().scene().range->from, box.start, 1e-9);
  EXPECT_NEAR(timeline().scene().range->to, box.finish, 1e-9);
  EXPECT_NEAR(topology().scene().seconds, box.finish - box.start, 1e-9);
  EXPECT_TRUE(schedule().canvas().scene().selected.has_value());
  timeline().clear_range();
  EXPECT_FALSE(schedule().canvas().scene().selected.has_value());
}

// Nobody waits for the step of a plan while its views are behind others.
TEST_F(LinkedViewsTest, AStepIsPredictedOnceItsViewsAreInFront) {
  window_.raise_view(u"why"_s);
  QCoreApplication::processEvents();
  const auto before = timeline().tracks().timelines();
  window_.selection().show(small_set());
  ASSERT_TRUE(wait_for([&] { return !window_.is_busy(); }));
  QCoreApplication::processEvents();
  EXPECT_FALSE(window_.is_busy());
  EXPECT_TRUE(timeline().tracks().timelines().empty() || timeline().tracks().timelines() == before);
  window_.raise_view(u"schedule"_s);
  ASSERT_TRUE(wait_for([&] {
    return !window_.is_busy() && !timeline().tracks().empty() &&
           timeline().tracks().timelines() != before;
  }));
}

// The step of the plan that is compared lies below that of the chosen one, with its own memory,
// until nothing is compared.
TEST_F(LinkedViewsTest, ComparedPlansLieBelowEachOther) {
  const PlanSetPointer set = small_set();
  ASSERT_GT(set->plans.size(), 2U);
  window_.selection().show(set);
  window_.selection().choose(0);
  const auto compares = [&](bool wanted) {
    return wait_for([&] { return !window_.is_busy() && timeline().tracks().compares() == wanted; });
  };
  ASSERT_TRUE(compares(false));
  window_.selection().compare_with(2);
  ASSERT_TRUE(compares(true));
  const TimelineTracks& tracks = timeline().tracks();
  EXPECT_EQ(tracks.side_title(0), u"plan A"_s);
  EXPECT_EQ(tracks.side_title(1), u"plan B"_s);
  for (std::size_t side = 0; side < 2; ++side) {
    const sim::StepResult result = sim::simulate_step(set->scenario(side == 0 ? 0 : 2));
    double end = 0.0, peak = 0.0;
    for (const Span& span : tracks.timelines()[side]->spans)
      end = std::max(end, span.end().value());
    EXPECT_NEAR(end, result.step.value(), 1e-9 + 1e-6 * end);
    for (const Track& track : tracks.tracks()) {
      if (track.kind == TrackKind::Memory && track.side == side)
        peak = std::max(peak, tracks.memory_rows()[track.row].peak.bytes);
    }
    EXPECT_NEAR(peak, result.stages[static_cast<std::size_t>(result.fullest)].memory.peak.value(),
                1e-3 * peak);
  }
  // The chosen one beside itself is no comparison.
  window_.selection().choose(2);
  EXPECT_TRUE(compares(false));
  window_.selection().choose(1);
  ASSERT_TRUE(compares(true));
  // The button above the rows ends it.
  QTest::mouseClick(window_.findChild<QToolButton*>(u"timeline_back"_s), Qt::LeftButton);
  EXPECT_TRUE(compares(false));
  EXPECT_FALSE(window_.selection().compared());
}

TEST_F(LinkedViewsTest, ARankIsLookedUpInTheTimeline) {
  window_.resize(1400, 500);
  QCoreApplication::processEvents();
  topology().select_rank(0);
  const int first = timeline().verticalScrollBar()->value();
  topology().select_rank(static_cast<int>(fixtures::small_step().scenario.plan.world_size()) - 1);
  EXPECT_GT(timeline().verticalScrollBar()->value(), first);
}

}  // namespace
}  // namespace shardwright::gui
