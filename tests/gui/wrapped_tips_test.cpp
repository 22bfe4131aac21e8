#include "gui/window/wrapped_tips.hpp"

#include <gtest/gtest.h>

#include <QApplication>
#include <QHeaderView>
#include <QHelpEvent>
#include <QPushButton>
#include <QTableView>
#include <QToolTip>

#include "gui/painting/navigable_view.hpp"
#include "gui/views/chart.hpp"
#include "tests/gui/painted_view_test.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

using WrappedTipsTest = WindowTest;

// Qt would show each of them in one line, however long it is.
TEST_F(WrappedTipsTest, LongTipsAreBrokenIntoLines) {
  show_plans();
  const auto width_of_tip = [](QWidget& widget, const QPoint& at) {
    QHelpEvent help(QEvent::ToolTip, at, widget.mapToGlobal(at));
    QCoreApplication::sendEvent(&widget, &help);
    int width = 0;
    for (const QWidget* shown : QApplication::topLevelWidgets())
      if (shown->inherits("QTipLabel") && shown->isVisible()) width = shown->width();
    return width;
  };
  auto& button = find<QPushButton>("run_start");
  window_.raise_view(u"run"_s);
  button.setToolTip(u"Start & wait "_s.repeated(30));
  const int one_line = button.fontMetrics().horizontalAdvance(button.toolTip());
  const int width = width_of_tip(button, button.rect().center());
  EXPECT_GT(width, 100);
  EXPECT_LT(width, one_line / 2);
  EXPECT_THAT(QToolTip::text(), Says("&amp;"));
  button.setToolTip(u"Start"_s);
  width_of_tip(button, button.rect().center());
  EXPECT_EQ(QToolTip::text(), u"Start"_s);

  // The tips of headers come from their models.
  window_.raise_view(u"plans"_s);
  auto& header = *find<QTableView>("plans_table").horizontalHeader();
  for (int column = 0; column < header.count(); ++column) {
    const QString tip =
        header.model()->headerData(column, Qt::Horizontal, Qt::ToolTipRole).toString();
    if (header.isSectionHidden(column) || tip.size() < 90) continue;
    const QPoint at(header.sectionViewportPosition(column) + 5, 5);
    if (!header.viewport()->rect().contains(at)) continue;
    const int all = header.fontMetrics().horizontalAdvance(tip);
    EXPECT_GT(width_of_tip(*header.viewport(), at), 100);
    EXPECT_LT(width_of_tip(*header.viewport(), at), all) << qPrintable(tip);
  }
  QToolTip::hideText();
}

// Tips without a figure, such as those of a point where no plan runs, have no share.
// Rests the mouse all over each view, so that a chart that somebody adds is asked, too.
TEST_F(WrappedTipsTest, EachMarkHasAShareAndNamesItsSource) {
  window_.document().reset(small_choice());
  ASSERT_TRUE(has_plans());
  std::size_t charts = 0, tips = 0;
  for (const char* view : {"plans", "why", "timeline", "schedule", "topology", "sweeps"}) {
    window_.raise_view(to_qstring(view));
    ASSERT_TRUE(is_idle());
    for (auto* chart : window_.findChildren<QWidget*>()) {
      const bool is_chart = qobject_cast<Chart*>(chart) != nullptr;
      auto* area = qobject_cast<NavigableArea*>(chart);
      if (!chart->isVisible() || (!is_chart && area == nullptr)) continue;
      QWidget& marks = area != nullptr ? *area->viewport() : *chart;
      ++charts;
      for (int y = 5; y < marks.height(); y += 16) {
        for (int x = 5; x < marks.width(); x += 60) {
          const QString tip = fixtures::tool_tip_at(marks, {x, y});
          if (!tip.contains(u"<table"_s)) continue;
          ++tips;
          ASSERT_TRUE(tip.contains(u">source"_s)) << view << ": " << qPrintable(tip);
          ASSERT_TRUE(tip.count(u"<tr>"_s) == 1 || tip.contains(u'%'))
              << view << ": " << qPrintable(tip);
        }
      }
    }
  }
  EXPECT_GT(charts, 5U);
  EXPECT_GT(tips, 100U);
}

}  // namespace
}  // namespace shardwright::gui
