#include "gui/window/wrapped_tips.hpp"

#include <gtest/gtest.h>

#include <QApplication>
#include <QHeaderView>
#include <QHelpEvent>
#include <QPushButton>
#include <QTableView>
#include <QToolTip>

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

}  // namespace
}  // namespace shardwright::gui
