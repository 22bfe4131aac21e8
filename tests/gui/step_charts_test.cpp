#include "gui/views/step_charts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QTabWidget>
#include <algorithm>
#include <map>

#include "gui/views/why_view.hpp"
#include "tests/gui/painted_view_test.hpp"
#include "tests/gui/small_scenario.hpp"

namespace shardwright::gui {
namespace {

using gui::fixtures::shown;
using gui::fixtures::tool_tip_at;

// Returns a step of `length` seconds of which matrix products take `share`.
sim::StepResult step_of(double length, double share) {
  sim::StepResult result;
  result.step = Seconds(length);
  sim::StageResult& stage = result.stages.emplace_back();
  stage.time.gemm = Seconds(share * length);
  stage.time.attention = Seconds((1.0 - share) * length);
  return result;
}

std::vector<QCPItemText*> labels_of(const QCustomPlot& chart) {
  std::vector<QCPItemText*> labels;
  for (int i = 0; i < chart.itemCount(); ++i) {
    if (auto* label = qobject_cast<QCPItemText*>(chart.item(i))) labels.push_back(label);
  }
  return labels;
}

class Pictured : public Chart {
 public:
  using Chart::Chart;
  bool has_picture() const { return !mPaintBuffers.isEmpty(); }
};

// The picture of a chart behind a tab takes megabytes. It is drawn anew when the chart is seen
// again.
TEST(Chart, KeepsItsPictureOnlyWhileItIsSeen) {
  QTabWidget tabs;
  auto* chart = new Pictured;
  tabs.addTab(chart, u"chart"_s);
  tabs.addTab(new QWidget, u"another"_s);
  chart->addGraph()->setData({0.0, 1.0}, {0.0, 1.0});
  chart->rescaleAxes();
  shown(tabs, {400, 300});
  ASSERT_TRUE(chart->has_picture());
  const QImage before = chart->grab().toImage();
  tabs.setCurrentIndex(1);
  chart->replot();
  EXPECT_FALSE(chart->has_picture());
  tabs.setCurrentIndex(0);
  EXPECT_TRUE(QTest::qWaitFor([chart] { return chart->has_picture(); }));
  EXPECT_EQ(chart->grab().toImage(), before);
}

// However long the longest bar is, its share can be read.
TEST(WaterfallChart, EveryLabelLiesInsideTheAxes) {
  WaterfallChart chart;
  const auto cases = {std::pair{270, std::optional<sim::StepResult>()},
                      {290, std::nullopt},
                      {420, std::nullopt},
                      {440, step_of(17.0, 0.4)}};
  for (const auto& [width, beside] : cases) {
    for (const double share : {0.05, 0.5, 0.7, 0.75, 0.9, 0.99}) {
      shown(chart, {width, 300});
      chart.show(step_of(16.0, share), TipSource(u"simulation"_s), beside);
      chart.replot();
      const QRectF room = QRectF(chart.axisRect()->rect()).adjusted(-2, -2, 2, 2);
      ASSERT_FALSE(labels_of(chart).empty());
      for (const QCPItemText* label : labels_of(chart)) {
        EXPECT_GE(label->topLeft->pixelPosition().x(), room.left()) << share;
        EXPECT_LE(label->bottomRight->pixelPosition().x(), room.right()) << share;
      }
    }
  }
}

TEST(SensitivityChart, EveryLabelLiesInsideTheAxesOfANarrowChart) {
  SensitivityChart chart;
  shown(chart, {270, 300});
  planner::Sensitivity much;
  much.gain = 0.081;
  planner::Sensitivity more = much;
  more.through = "tp 4";
  chart.show({much, more}, TipSource(u"simulation"_s));
  chart.replot();
  ASSERT_EQ(labels_of(chart).size(), 2U);
  for (const QCPItemText* label : labels_of(chart)) {
    EXPECT_LE(label->bottomRight->pixelPosition().x(), chart.axisRect()->right() + 2)
        << label->text().toStdString();
  }
}

TEST(BarChart, ALabelThatWasCutIsWholeInAWiderChart) {
  const QString text = u"+3.1 % by overlapping more of the communication"_s;
  BarChart chart(u"gain (%)"_s);
  chart.show_bars({{u"memory"_s, 3.1, text, {}, 0, Qt::SolidPattern}});
  shown(chart, {200, 260});
  chart.replot();
  ASSERT_NE(labels_of(chart).at(0)->text(), text);
  chart.resize(1200, 260);
  chart.replot();
  EXPECT_EQ(labels_of(chart).at(0)->text(), text);
}

// Without room for its titles a chart would have none for its bars.
TEST(BarChart, LongTitlesLeaveRoomForTheBarsOfANarrowChart) {
  BarChart chart(u"shorter run (%)"_s);
  shown(chart, {240, 260});
  const QString title = u"interruptions by silent data corruption"_s;
  std::vector<Bar> bars(9, {title, 1.0, u"1.00 %"_s, title, 0, Qt::SolidPattern});
  chart.show_bars(bars);
  chart.replot();
  EXPECT_GT(chart.axisRect()->width(), 70);
}

TEST(BarChart, ATitleIsWholeWhereItLeavesRoomForTheBars) {
  BarChart chart(u"shorter run (%)"_s);
  shown(chart, {350, 260});
  const QString title = u"interruptions by silent data corruption"_s;
  chart.show_bars({{title, 1.0, u"1.00 %"_s, title, 0, Qt::SolidPattern}});
  chart.replot();
  EXPECT_EQ(chart.yAxis->ticker().staticCast<QCPAxisTickerText>()->ticks().value(0.0), title);
}

TEST(WaterfallChart, ShortStepsHaveShortUnits) {
  WaterfallChart chart;
  chart.show(step_of(6.69e-3, 0.5), TipSource(u"simulation"_s));
  EXPECT_TRUE(chart.xAxis->label().contains(u"milliseconds"_s));
  EXPECT_NEAR(chart.xAxis->range().upper, 1.05 * 6.69, 1e-9);
}

// The colour of the weights must not depend on what else a plan holds.
TEST(MemoryChart, ACategoryHasTheSameColourInEveryPlan) {
  MemoryChart chart;
  std::map<QString, QRgb> colours;
  for (const int left_out : {-1, 0, 2, 5}) {
    sim::StepResult result = step_of(1.0, 0.5);
    sim::MemoryPeak& memory = result.stages.front().memory;
    for (int i = 0; i < kMemoryCategories; ++i) {
      memory.breakdown[static_cast<std::size_t>(i)] = gigabytes(i == left_out ? 0.0 : 1.0);
      memory.peak += memory.breakdown[static_cast<std::size_t>(i)];
    }
    chart.show(result, TipSource(u"simulation"_s), {gigabytes(80.0)}, u"GPU"_s);
    // The line of the capacity is one more.
    EXPECT_EQ(chart.plottableCount(), left_out < 0 ? kMemoryCategories + 1 : kMemoryCategories);
    for (int i = 0; i < chart.plottableCount(); ++i) {
      const QRgb colour = chart.plottable(i)->brush().color().rgb();
      const auto known = colours.try_emplace(chart.plottable(i)->name(), colour);
      EXPECT_EQ(known.first->second, colour) << chart.plottable(i)->name().toStdString();
    }
  }
}

// A chart of one stage in a small window has narrow axes.
TEST(MemoryChart, TheCapacityIsReadableInANarrowChart) {
  MemoryChart chart;
  sim::StepResult result = step_of(1.0, 0.5);
  result.stages.front().memory.breakdown.fill(gigabytes(1.0));
  chart.show(result, TipSource(u"simulation"_s), {gigabytes(80.0)}, u"GPU"_s);
  shown(chart, {280, 260});
  chart.replot();
  const auto* entry = chart.legend->itemWithPlottable(chart.graph(0));
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(chart.graph(0)->name(), u"capacity 80 GB"_s);
  const int width = QFontMetrics(chart.legend->font()).horizontalAdvance(chart.graph(0)->name());
  EXPECT_TRUE(chart.rect().contains(entry->rect()));
  EXPECT_GE(entry->rect().width(), width + chart.legend->iconSize().width());
  EXPECT_FALSE(chart.legend->outerRect().intersects(chart.axisRect()->rect()));
}

TEST(MemoryChart, ItsLegendAndTheLineOfTheCapacityAnswer) {
  MemoryChart chart;
  sim::StepResult result = step_of(1.0, 0.5);
  sim::MemoryPeak& memory = result.stages.front().memory;
  memory.breakdown.fill(gigabytes(4.0));
  memory.peak = gigabytes(4.0 * kMemoryCategories);
  const QString part =
      u"%1, %2 of the capacity"_s.arg(bytes_text(gigabytes(4.0)), percent_text(0.05));
  chart.show(result, TipSource(u"simulation"_s), {gigabytes(80.0)}, u"GPU"_s);
  shown(chart, {500, 300});
  chart.replot();
  for (int i = 0; i < chart.legend->itemCount(); ++i) {
    const QString tip = tool_tip_at(chart, chart.legend->item(i)->rect().center());
    const bool is_capacity = i + 1 == chart.legend->itemCount();
    EXPECT_THAT(tip, Says(is_capacity ? u"80 GB"_s : part));
    EXPECT_THAT(tip, Says("simulation"));
  }
  const double line = chart.yAxis->coordToPixel(80.0);
  const QPoint on_it(chart.axisRect()->center().x(), static_cast<int>(line));
  EXPECT_THAT(tool_tip_at(chart, on_it), Says("memory of each GPU"));
  EXPECT_THAT(tool_tip_at(chart, on_it + QPoint(0, 8)), Says("free"));
}

// Beside the memory of a machine the bar of a tiny model would be a line.
TEST(MemoryChart, ABarIsReadableBesideACapacityManyTimesAsLarge) {
  MemoryChart chart;
  sim::StepResult result = step_of(1.0, 0.5);
  sim::MemoryPeak& memory = result.stages.front().memory;
  memory.breakdown.fill(gigabytes(0.01));
  memory.peak = gigabytes(0.01 * kMemoryCategories);
  const double peak = memory.peak / gigabytes(1.0);
  chart.show(result, TipSource(u"simulation"_s), {gigabytes(12.6)}, u"CPU rank"_s);
  EXPECT_NEAR(chart.yAxis->range().upper, 1.08 * peak, 1e-9);
  EXPECT_EQ(chart.graph(0)->name(), u"capacity 12.6 GB, above"_s);
  EXPECT_EQ(chart.yAxis->label(), u"memory of each CPU rank (MB)"_s);
  shown(chart, {400, 300});
  chart.replot();
  QVector<double> ticks;
  QVector<QString> labels;
  chart.yAxis->ticker()->generate(chart.yAxis->range(), QLocale::c(), u'g', 6, ticks, nullptr,
                                  &labels);
  EXPECT_TRUE(labels.contains(u"100"_s)) << labels.join(u' ').toStdString();
  chart.show(result, TipSource(u"simulation"_s), {15.0 * memory.peak}, u"CPU rank"_s);
  EXPECT_GT(chart.yAxis->range().upper, 15.0 * peak);
  EXPECT_EQ(chart.yAxis->label(), u"memory of each CPU rank (GB)"_s);
}

// The sums of a step leave a residue where they cancel, which the comparison shows as 0 s.
TEST(WaterfallChart, ResiduesOfSumsAreNeitherDrawnNorNamed) {
  sim::StepResult result = step_of(16.0, 0.5);
  result.stages.front().time.host = Seconds(4e-15);
  WaterfallChart chart;
  chart.show(result, TipSource(u"simulation"_s));
  EXPECT_EQ(chart.plottableCount(), 2);
  for (const QCPItemText* label : labels_of(chart))
    EXPECT_FALSE(label->text().contains(u'<')) << label->text().toStdString();
}

TEST(PlanStory, ZeroCostsAreNamedForBubbleHostAndOptimizer) {
  QStringList titles;
  for (const TimePart& part : time_parts(step_of(1.0, 0.5).time())) titles.append(part.title);
  for (const char* title : {"optimizer", "pipeline bubble", "waiting for the host"})
    EXPECT_TRUE(titles.contains(to_qstring(title))) << title;
  EXPECT_FALSE(titles.contains(u"exposed: tensor parallel"_s));
}

// Both have parts of all phases.
TEST(PlanStory, KernelsHaveNotTheColoursOfThePhasesInTimeline) {
  const auto parts = time_parts(step_of(1.0, 0.5).time());
  for (const Phase phase :
       {Phase::Forward, Phase::Recompute, Phase::BackwardInput, Phase::BackwardWeight}) {
    const Role in_timeline = role_of(OpKind::Gemm, phase);
    EXPECT_EQ(std::count_if(parts.begin(), parts.end(),
                            [&](const TimePart& part) { return part.role == in_timeline; }),
              0)
        << title_of(in_timeline).toStdString();
  }
}

QStringList tick_labels(const QCPAxis& axis) {
  QVector<double> ticks;
  QVector<QString> texts;
  axis.ticker()->generate(axis.range(), QLocale::c(), u'g', 6, ticks, nullptr, &texts);
  return texts;
}

TEST(Tickers, NumbersOfAnAxisHaveOnePrefixAndEquallyManyDecimals) {
  Chart chart;
  shown(chart, {900, 400});
  chart.xAxis->setRange(0.047, 0.057);
  chart.replot();
  EXPECT_THAT(tick_labels(*chart.xAxis), testing::IsSupersetOf({u"0.050"_s, u"0.052"_s}));
  chart.xAxis->setRange(0.0, 11'000.0);
  EXPECT_THAT(tick_labels(*chart.xAxis), testing::IsSupersetOf({u"0"_s, u"4 k"_s, u"10 k"_s}));
  chart.xAxis->setRange(0.0, 2.0);
  EXPECT_THAT(tick_labels(*chart.xAxis), testing::IsSupersetOf({u"0"_s, u"0.5"_s, u"1.0"_s}));
  chart.xAxis->setTicker(QSharedPointer<WholeTicker>::create(chart.xAxis));
  EXPECT_THAT(tick_labels(*chart.xAxis), testing::IsSupersetOf({u"0"_s, u"1"_s, u"2"_s}));
  for (const QString& label : tick_labels(*chart.xAxis)) EXPECT_FALSE(label.contains(u'.'));
}

}  // namespace
}  // namespace shardwright::gui
