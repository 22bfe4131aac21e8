#include "gui/views/sweep_view.hpp"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QSpinBox>
#include <QTableView>

#include "gui/views/empty_state.hpp"
#include "gui/views/forecast_view.hpp"
#include "gui/views/point_chart.hpp"
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
              Says(">Memory (GB)\u00a0\u00a0</td><td"));
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

}  // namespace
}  // namespace shardwright::gui
