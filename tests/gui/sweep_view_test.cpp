#include "gui/views/sweep_view.hpp"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QScrollArea>
#include <QSpinBox>
#include <QTableView>
#include <cmath>
#include <utility>

#include "gui/models/chosen_request.hpp"
#include "gui/views/empty_state.hpp"
#include "gui/views/forecast_view.hpp"
#include "gui/views/point_chart.hpp"
#include "gui/views/sweep_chart.hpp"
#include "tests/gui/painted_view_test.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

using fixtures::tool_tip_at;
using testing::Not;

class SweepViewTest : public WindowTest {
 protected:
  void sweep(planner::SweepAxis axis, PlanSet set) {
    find<QComboBox>("sweep_axis").setCurrentIndex(static_cast<int>(axis));
    window_.raise_view(u"sweeps"_s);
    window_.selection().show(std::make_shared<const PlanSet>(std::move(set)));
    ASSERT_TRUE(is_idle());
  }
  TextTable data() { return window_.findChild<SweepView*>()->table(); }
  QString reason() { return find<QLabel>("knee_reason").text(); }
  QString hint() {
    const auto* empty = qobject_cast<EmptyState*>(find<Chart>("sweep_chart").parentWidget());
    return empty->is_empty() ? empty->hint() : QString();
  }
};

TEST_F(SweepViewTest, AlongGpusTheBatchThatWasChosenIsNamed) {
  PlanSet open = *small_set();
  open.request.global_batch = 0;
  open.request.max_global_batch = 64;
  sweep(planner::SweepAxis::Gpus, open);
  const TextTable table = data();
  const qsizetype column = table.header.indexOf(u"Batch (sequences)"_s);
  ASSERT_GE(column, 0);
  ASSERT_FALSE(table.rows.empty());
  const QString batch = table.rows.back()[column];
  EXPECT_GT(batch.toInt(), 0);
  const QString reason = find<QLabel>("knee_reason").text();
  EXPECT_THAT(reason, Says(u"All train %1 sequences"_s.arg(batch)));

  sweep(planner::SweepAxis::Gpus, *small_set());
  EXPECT_FALSE(find<QLabel>("knee_reason").text().contains(u"All train"_s));
}

// The sentence below the chart has the answer, so that it is not scrolled out of the first window.
TEST_F(SweepViewTest, TheReasonBelowTheChartIsSeenInAWindowOfItsFirstSize) {
  window_.resize(1280, 690);
  sweep(planner::SweepAxis::SeqLen, *small_set());
  QCoreApplication::processEvents();
  const auto& reason = find<QLabel>("knee_reason");
  const auto* area = window_.findChild<SweepView*>()->findChild<QScrollArea*>();
  const QRect shown = reason.rect().translated(reason.mapTo(area->viewport(), QPoint()));
  EXPECT_FALSE(reason.text().isEmpty());
  EXPECT_LE(shown.bottom(), area->viewport()->rect().bottom());
}

// With real keys: what is typed is swept, and one button brings the usual points back.
TEST_F(SweepViewTest, SweepsTheRangeThatIsTyped) {
  sweep(planner::SweepAxis::SeqLen, *small_set());
  const qsizetype usual = data().rows.size();
  EXPECT_FALSE(find<QToolButton>("usual_range").isEnabled());
  type(find<QDoubleSpinBox>("sweep_from"), u"1000"_s, Qt::Key_Return);
  type(find<QDoubleSpinBox>("sweep_to"), u"3000"_s, Qt::Key_Return);
  type(find<QSpinBox>("sweep_points"), u"3"_s, Qt::Key_Return);
  ASSERT_TRUE(is_idle());
  // A field that nobody types into has separators of thousands.
  EXPECT_EQ(find<QDoubleSpinBox>("sweep_from").text(), u"1,000"_s);
  QStringList lengths;
  for (const QStringList& row : data().rows) lengths.append(row.front());
  EXPECT_EQ(lengths, QStringList({u"1024"_s, u"1792"_s, u"2944"_s}));
  QTest::mouseClick(&find<QToolButton>("usual_range"), Qt::LeftButton);
  ASSERT_TRUE(is_idle());
  EXPECT_EQ(data().rows.size(), usual);
}

// Another plan is chosen, as by a search that goes on, while somebody types.
TEST_F(SweepViewTest, ATypedNumberIsNotRewritten) {
  sweep(planner::SweepAxis::SeqLen, *small_set());
  for (const char* field : {"sweep_from", "sweep_to", "sweep_points"}) {
    auto& box = find<QAbstractSpinBox>(field);
    box.setFocus();
    QTest::keyClick(&box, Qt::Key_A, Qt::ControlModifier);
    QTest::keyClicks(&box, u"1"_s);
    window_.selection().choose(1 - *window_.selection().chosen());
    ASSERT_TRUE(is_idle());
    QTest::keyClicks(&box, u"2"_s);
    EXPECT_THAT(box.text(), testing::Property(&QString::toStdString, testing::StartsWith("12")))
        << field;
    QTest::keyClick(&box, Qt::Key_Return);
    ASSERT_TRUE(is_idle());
  }
  EXPECT_EQ(find<QDoubleSpinBox>("sweep_from").value(), 12.0);
  EXPECT_EQ(find<QSpinBox>("sweep_points").value(), 12);
}

// A view behind the tab of another counts as visible for Qt.
TEST_F(SweepViewTest, NothingIsSweptOrForecastBehindATab) {
  sweep(planner::SweepAxis::SeqLen, *small_set());
  ASSERT_FALSE(data().rows.empty());
  window_.raise_view(u"forecast"_s);
  ASSERT_TRUE(is_idle());
  const auto* forecast = window_.findChild<ForecastView*>();
  ASSERT_FALSE(forecast->table().rows.empty());
  window_.raise_view(u"why"_s);
  ASSERT_TRUE(is_idle());
  auto& table = find<QTableView>("plans_table");
  QTest::mouseClick(table.viewport(), Qt::LeftButton, {},
                    table.visualRect(table.model()->index(1, 0)).center());
  ASSERT_EQ(window_.selection().chosen(), std::optional<std::size_t>(1));
  EXPECT_FALSE(window_.findChild<SweepView*>()->is_busy());
  EXPECT_FALSE(forecast->is_busy());
  EXPECT_TRUE(data().rows.empty());
  window_.raise_view(u"sweeps"_s);
  ASSERT_TRUE(is_idle());
  EXPECT_FALSE(data().rows.empty());
  EXPECT_FALSE(forecast->is_busy());
}

TEST_F(SweepViewTest, DrawsASecondFigureOnTheRightAndMarksTheScenario) {
  sweep(planner::SweepAxis::MemoryBandwidth, *small_set());
  auto& chart = find<PointChart>("sweep_chart");
  const std::size_t points = chart.points().size();
  const auto has_graph = [&](const QString& name) {
    for (int i = 0; i < chart.graphCount(); ++i)
      if (chart.graph(i)->name() == name) return true;
    return false;
  };
  EXPECT_TRUE(has_graph(u"the scenario"_s));
  find<QComboBox>("sweep_second").setCurrentText(u"Memory (GB)"_s);
  ASSERT_EQ(chart.points().size(), 2 * points);
  EXPECT_TRUE(chart.yAxis2->visible());
  EXPECT_THAT(tool_tip_at(chart, chart.pixel_of(points).toPoint()),
              Says(">Memory\u00a0\u00a0</td><td"));
  EXPECT_THAT(tool_tip_at(chart, chart.pixel_of(points).toPoint()),
              Says(" GB, 100.0 % of the largest</td>"));
  EXPECT_EQ(data().header.last(), u"Memory (GB)"_s);
}

TEST_F(SweepViewTest, WithoutALinkItSaysThatThereIsNothingToSweep) {
  PlanSet alone = *small_set();
  alone.request.cluster.node.nic.bandwidth = BytesPerSecond(0.0);
  sweep(planner::SweepAxis::ScaleOutBandwidth, alone);
  const auto* empty = qobject_cast<EmptyState*>(find<Chart>("sweep_chart").parentWidget());
  ASSERT_NE(empty, nullptr);
  EXPECT_TRUE(empty->is_empty());
  EXPECT_THAT(empty->hint(), Says("nothing to sweep"));
  EXPECT_TRUE(find<QLabel>("knee_reason").text().isEmpty());
  EXPECT_TRUE(data().rows.empty());

  find<QComboBox>("sweep_axis")
      .setCurrentIndex(static_cast<int>(planner::SweepAxis::MemoryBandwidth));
  ASSERT_TRUE(is_idle());
  EXPECT_FALSE(empty->is_empty());
}

TEST_F(SweepViewTest, NothingOfTheFormerSweepIsLeftUnderANewChoice) {
  sweep(planner::SweepAxis::GlobalBatch, *small_set());
  ASSERT_FALSE(data().rows.empty());
  ASSERT_TRUE(reason().contains(u"Knee"_s));
  window_.selection().choose(1);
  EXPECT_TRUE(data().rows.empty());
  EXPECT_EQ(find<Chart>("sweep_chart").graphCount(), 0);
  find<QToolButton>("stop_sweep").click();
  EXPECT_THAT(reason(), Not(Says("Knee")));
  EXPECT_THAT(hint(), Says("Stopped before there was a point"));
}

TEST_F(SweepViewTest, OneThatWasStoppedBeforeAPointIsSweptForTheNextPlan) {
  sweep(planner::SweepAxis::GlobalBatch, *small_set());
  auto& view = *window_.findChild<SweepView*>();
  // The chosen plan is no part of a sweep along GPUs.
  find<QComboBox>("sweep_axis").setCurrentIndex(static_cast<int>(planner::SweepAxis::Gpus));
  find<QToolButton>("stop_sweep").click();
  ASSERT_TRUE(data().rows.empty());
  window_.selection().show(small_set());  // The search goes on.
  EXPECT_FALSE(view.is_busy());
  window_.selection().choose(1);
  ASSERT_TRUE(is_idle());
  EXPECT_FALSE(data().rows.empty());
  EXPECT_EQ(hint(), QString());
}

TEST_F(SweepViewTest, SaysWhosePlansItShows) {
  show_plans();
  window_.raise_view(u"sweeps"_s);
  auto& plan = find<QComboBox>("sweep_plan");
  auto& axis = find<QComboBox>("sweep_axis");
  EXPECT_FALSE(plan.isEnabled());  // Each number of GPUs has its own best plan.
  const auto legend = [&] { return find<Chart>("sweep_chart").graph(2)->name(); };
  ASSERT_TRUE(is_idle());
  EXPECT_TRUE(legend().contains(u"best plan"_s));

  axis.setFocus();
  QTest::keyClick(&axis, Qt::Key_Down);
  EXPECT_TRUE(plan.isEnabled());
  ASSERT_TRUE(is_idle());
  EXPECT_TRUE(legend().contains(u"chosen plan"_s));
  EXPECT_TRUE(find<QLabel>("knee_reason").text().contains(u"Each point is the chosen plan"_s));

  plan.setFocus();
  QTest::keyClick(&plan, Qt::Key_Up);
  ASSERT_TRUE(is_idle());
  EXPECT_TRUE(legend().contains(u"best plan"_s));
}

// The best plan of each size is the same whichever plan is chosen.
TEST_F(SweepViewTest, OneOfSizesStaysWhenAnotherPlanIsChosen) {
  show_plans();
  window_.raise_view(u"sweeps"_s);
  const auto& stop = find<QToolButton>("stop_sweep");
  ASSERT_TRUE(is_idle());
  EXPECT_FALSE(stop.isVisible());
  window_.selection().choose(3);
  EXPECT_FALSE(stop.isVisible());
  find<QComboBox>("sweep_axis").setCurrentIndex(static_cast<int>(planner::SweepAxis::GlobalBatch));
  EXPECT_TRUE(stop.isVisible());
  ASSERT_TRUE(is_idle());
  EXPECT_FALSE(stop.isVisible());
  window_.selection().choose(4);
  EXPECT_TRUE(stop.isVisible());
}

TEST_F(SweepViewTest, SaysWhichPointsArePreliminaryAndStopsWhenAsked) {
  planner::PlanRequest request = load_request(ScenarioChoice());  // Its whole space takes seconds.
  const planner::SearchLimits all = std::exchange(request.limits, planner::narrow_limits());
  request.top = 1;
  request.front = false;
  PlanSet plans = plan_set_of(request, planner::search(request));
  plans.request.limits = all;
  window_.raise_view(u"sweeps"_s);
  window_.selection().show(std::make_shared<const PlanSet>(std::move(plans)));
  auto& chart = find<Chart>("sweep_chart");
  const auto& reason = find<QLabel>("knee_reason");
  const auto& stop = find<QToolButton>("stop_sweep");
  const auto preliminary = [&]() -> const QCPGraph* {
    for (int i = 0; i < chart.graphCount(); ++i) {
      if (chart.graph(i)->name() == u"preliminary"_s) return chart.graph(i);
    }
    return nullptr;
  };
  ASSERT_TRUE(wait_for([&] { return preliminary() != nullptr; }));
  EXPECT_THAT(reason.text(), Says("preliminary"));
  EXPECT_FALSE(reason.text().contains(u"Knee"_s));
  ASSERT_TRUE(stop.isVisible());
  QTest::mouseClick(&find<QToolButton>("stop_sweep"), Qt::LeftButton);
  EXPECT_FALSE(stop.isVisible());
  EXPECT_TRUE(reason.text().startsWith(u"Stopped: "_s));
  ASSERT_NE(preliminary(), nullptr);
  const int kept = preliminary()->dataCount();
  QTest::qWait(1500);  // The stopped sweep has the time to say more.
  ASSERT_NE(preliminary(), nullptr);
  EXPECT_EQ(preliminary()->dataCount(), kept);
  EXPECT_TRUE(reason.text().startsWith(u"Stopped: "_s));
  const QImage drawn = chart.grab().toImage();
  for (const QCPGraphData& point : *preliminary()->data()) {  // It is hollow.
    const QPointF at = preliminary()->coordsToPixels(point.key, point.value);
    EXPECT_EQ(drawn.pixelColor((at * drawn.devicePixelRatio()).toPoint()), chart.colours().base);
  }
}

// A point that has no plan at all stands at zero.
TEST_F(SweepViewTest, ShowsAllOfAPointThatDoesNotFit) {
  ScenarioChoice choice = small_choice();
  choice.constraints = "pp=2; schedule=1f1b; zero=1";
  window_.document().reset(choice);
  window_.raise_view(u"sweeps"_s);
  window_.start();
  ASSERT_TRUE(has_plans());
  auto& chart = find<Chart>("sweep_chart");
  chart.replot();
  const QRectF axes = chart.axisRect()->rect();
  int crosses = 0;
  for (int i = 0; i < chart.graphCount(); ++i) {
    if (chart.graph(i)->name() != u"no plan"_s) continue;
    const double half = 0.5 * chart.graph(i)->scatterStyle().size();
    for (const QCPGraphData& point : *chart.graph(i)->data()) {
      const QPointF at = chart.graph(i)->coordsToPixels(point.key, point.value);
      EXPECT_GE(axes.bottom() - at.y(), half);
      EXPECT_TRUE(axes.contains(at));
      ++crosses;
    }
  }
  EXPECT_GT(crosses, 0);
}

// The line is open where the schedule of the chosen plan does not run the batch.
TEST(SweepChart, LeavesTheLineOpenWhereThePlanCannotRun) {
  SweepChart chart;
  planner::Sweep sweep;
  sweep.axis = planner::SweepAxis::GlobalBatch;
  sweep.plan = planner::SweepPlan::Chosen;
  for (const double batch : {32.0, 48.0, 64.0}) {
    planner::SweepPoint point;
    point.value = batch;
    if (batch == 48.0) {
      point.broken_rule = Problem{"/schedule", "interleaved with 3 microbatches", "another number"};
    } else {
      point.candidate = small_set()->plans.front();
      point.fits = true;
    }
    sweep.points.push_back(point);
  }
  chart.show_figures({sweep, small_set()->scenario(0), SweepFigure::TokensPerSecond, {}, 32.0});
  QStringList names;
  bool is_open = false;
  for (int i = 0; i < chart.graphCount(); ++i) {
    names.append(chart.graph(i)->name());
    if (names.back() == u"predicted, the chosen plan"_s)
      is_open = std::isnan((chart.graph(i)->data()->constBegin() + 1)->value);
  }
  EXPECT_TRUE(is_open);
  EXPECT_TRUE(names.contains(u"the plan cannot run here"_s));
  EXPECT_FALSE(names.contains(u"does not fit"_s));
}

}  // namespace
}  // namespace shardwright::gui
