#include <gtest/gtest.h>

#include <QScrollBar>

#include "gui/schedule/schedule_view.hpp"
#include "gui/timeline/timeline_view.hpp"
#include "gui/topology/topology_view.hpp"
#include "gui/window/main_window.hpp"
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
