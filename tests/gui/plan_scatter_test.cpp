#include "gui/views/plan_scatter.hpp"

#include <gtest/gtest.h>

#include <map>

#include "tests/gui/painted_view_test.hpp"
#include "tests/gui/small_scenario.hpp"

namespace shardwright::gui {
namespace {

using gui::testing::shown;

std::vector<int> first_rows(int count) {
  std::vector<int> rows;
  for (int row = 0; row < count; ++row) rows.push_back(row);
  return rows;
}

// Legend entries with their colours and shapes.
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
    scatter.set_axes(figure_index(QStringLiteral("step")), figure_index(QStringLiteral("memory")),
                     figure_index(QString::fromUtf8(figure)));
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
  scatter.set_axes(figure_index(QStringLiteral("step")), figure_index(QStringLiteral("memory")),
                   figure_index(QStringLiteral("tp")));
  scatter.show(small_set(), first_rows(1));
  const double step = small_set()->plans.front().result.step.value();
  EXPECT_GE(scatter.xAxis->range().lower, 0.0);
  EXPECT_LT(scatter.xAxis->range().upper, 2.0 * step);
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
