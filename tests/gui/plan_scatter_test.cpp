#include "gui/views/plan_scatter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "tests/gui/painted_view_test.hpp"
#include "tests/gui/small_scenario.hpp"

namespace shardwright::gui {
namespace {

using gui::fixtures::shown;

std::vector<int> first_rows(int count) {
  std::vector<int> rows;
  for (int row = 0; row < count; ++row) rows.push_back(row);
  return rows;
}

// Returns the colour and the shape of each legend entry.
std::map<QString, std::pair<QRgb, int>> looks_of(const QCustomPlot& chart) {
  std::map<QString, std::pair<QRgb, int>> looks;
  for (int i = 0; i < chart.graphCount(); ++i) {
    const QCPScatterStyle style = chart.graph(i)->scatterStyle();
    looks[chart.graph(i)->name()] = {style.pen().color().rgb(), style.shape()};
  }
  return looks;
}

// While plans stream in, a degree keeps its colour and its marker.
TEST(PlanScatter, AValueLooksTheSameWhateverElseThereIs) {
  PlanScatter scatter;
  const int plans = static_cast<int>(small_set()->plans.size());
  ASSERT_GT(plans, 4);
  for (const char* figure : {"tp", "dp", "recompute"}) {
    scatter.set_axes(figure_index(u"step"_s), figure_index(u"memory"_s),
                     figure_index(to_qstring(figure)));
    std::map<QString, std::pair<QRgb, int>> known;
    for (int count = 1; count <= plans; ++count) {
      scatter.show(small_set(), first_rows(count));
      for (const auto& [name, look] : looks_of(scatter))
        EXPECT_EQ(known.try_emplace(name, look).first->second, look) << name.toStdString();
    }
  }
}

TEST(PlanScatter, OnePlanDoesNotTakeNegativeTime) {
  PlanScatter scatter;
  scatter.set_axes(figure_index(u"step"_s), figure_index(u"memory"_s), figure_index(u"tp"_s));
  scatter.show(small_set(), first_rows(1));
  const double step = small_set()->plans.front().result.step.value();
  EXPECT_GE(scatter.xAxis->range().lower, 0.0);
  EXPECT_LT(scatter.xAxis->range().upper, 2.0 * step);
}

// Returns where the labels of an axis begin and end, in pixels along it, in their order.
std::vector<std::pair<double, double>> labels_of(const QCPAxis& axis) {
  QVector<double> ticks;
  QVector<QString> texts;
  axis.ticker()->generate(axis.range(), QLocale::c(), u'g', 6, ticks, nullptr, &texts);
  const QFontMetrics metrics(axis.tickLabelFont());
  std::vector<std::pair<double, double>> labels;
  for (qsizetype i = 0; i < ticks.size(); ++i) {
    if (texts[i].isEmpty()) continue;
    const bool along = axis.orientation() == Qt::Horizontal;
    const double half = 0.5 * (along ? metrics.horizontalAdvance(texts[i]) : metrics.height());
    const double at = axis.coordToPixel(ticks[i]);
    labels.emplace_back(at - half, at + half);
  }
  std::sort(labels.begin(), labels.end());
  return labels;
}

// The panes are narrow, show one plan or many, and may have logarithmic axes.
TEST(PlanScatter, LabelsOfTicksStayApart) {
  PlanScatter scatter;
  scatter.set_axes(figure_index(u"step"_s), figure_index(u"rate"_s), figure_index(u"tp"_s));
  for (const int plans : {1, 2, static_cast<int>(small_set()->plans.size())}) {
    scatter.show(small_set(), first_rows(plans));
    for (const QSize size : {QSize(150, 130), QSize(210, 160), QSize(290, 240), QSize(700, 500)}) {
      shown(scatter, size);
      scatter.replot();
      for (const QCPAxis* axis : {scatter.xAxis, scatter.yAxis}) {
        const auto labels = labels_of(*axis);
        EXPECT_GE(labels.size(), size.width() < 200 ? 1U : 2U) << plans << ", " << size.width();
        for (std::size_t i = 1; i < labels.size(); ++i)
          EXPECT_LE(labels[i - 1].second, labels[i].first) << plans << ", " << size.width();
      }
    }
  }
}

// The logarithmic axis is zoomed until it spans no two of the usual ticks.
TEST(PlanScatter, AShortLogarithmicAxisHasTicksToReadValuesBy) {
  PlanScatter scatter;
  scatter.show(small_set(), first_rows(static_cast<int>(small_set()->plans.size())));
  const int figures = static_cast<int>(plan_figures().size());
  for (int x = 0; x < figures && scatter.xAxis->scaleType() != QCPAxis::stLogarithmic; ++x)
    scatter.set_axes(x, figure_index(u"rate"_s), figure_index(u"tp"_s));
  ASSERT_EQ(scatter.xAxis->scaleType(), QCPAxis::stLogarithmic);
  shown(scatter, {700, 500});
  for (const auto& [from, to] : {std::pair(1.1, 1.9), {2.1, 9.9}, {0.021, 0.049}, {230.0, 480.0}}) {
    scatter.xAxis->setRange(from, to);
    scatter.replot();
    EXPECT_GE(labels_of(*scatter.xAxis).size(), 2U) << from << " … " << to;
  }
}

// Points must not lie below the legend.
TEST(PlanScatter, TheLegendLiesOutsideOfTheAxes) {
  PlanScatter scatter;
  scatter.show(small_set(), first_rows(static_cast<int>(small_set()->plans.size())));
  scatter.mark(0, 1);
  shown(scatter, {560, 360});
  scatter.replot();
  EXPECT_FALSE(scatter.legend->outerRect().intersects(scatter.axisRect()->rect()));
}

}  // namespace
}  // namespace shardwright::gui
