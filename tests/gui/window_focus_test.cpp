// The focus and the commands belong to a view that the user sees.
#include <gtest/gtest.h>

#include <QApplication>
#include <QClipboard>
#include <QDockWidget>
#include <QLineEdit>
#include <QTabBar>
#include <QTableView>
#include <set>

#include "gui/timeline/timeline_view.hpp"
#include "gui/window/shortcut_overlay.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

class WindowFocusTest : public WindowTest {
 protected:
  const QDockWidget* dock_with_focus() const {
    for (const QDockWidget* dock : window_.docks()) {
      if (dock->isAncestorOf(QApplication::focusWidget())) return dock;
    }
    return nullptr;
  }
};

// Space holds the chosen plan, and the ones that are chosen next are compared with it.
TEST_F(WindowFocusTest, PlansAreComparedWithoutAMouse) {
  show_plans();
  window_.raise_view(u"plans"_s);
  const auto press = [](Qt::Key key) { QTest::keyClick(QApplication::focusWidget(), key); };
  ASSERT_EQ(window_.selection().chosen(), std::optional<std::size_t>(0));
  press(Qt::Key_Space);
  press(Qt::Key_Down);
  EXPECT_EQ(window_.selection().chosen(), std::optional<std::size_t>(1));
  EXPECT_EQ(window_.selection().compared(), std::optional<std::size_t>(0));
  press(Qt::Key_Up);
  press(Qt::Key_Space);
  EXPECT_EQ(window_.selection().compared(), std::nullopt);
}

// Qt counts a view that is behind the tab of another as visible.
TEST_F(WindowFocusTest, TabStaysInViewsThatAreSeen) {
  show_plans();
  ASSERT_TRUE(window_.findChild<QDockWidget*>(u"schedule"_s)->isVisible());
  std::set<const QDockWidget*> entered;
  for (const QDockWidget* dock : window_.docks()) {
    for (const auto& [key, modifier] :
         {std::pair(Qt::Key_Tab, Qt::NoModifier), std::pair(Qt::Key_Backtab, Qt::ShiftModifier)}) {
      window_.raise_view(dock->objectName());
      ASSERT_TRUE(is_idle());
      std::set<const QWidget*> reached;
      while (reached.insert(QApplication::focusWidget()).second) {
        QTest::keyClick(QApplication::focusWidget(), key, modifier);
        const QDockWidget* now = dock_with_focus();
        ASSERT_NE(QApplication::focusWidget(), nullptr);
        if (now == nullptr) continue;  // The tabs of the docks are no view.
        EXPECT_TRUE(now->isAncestorOf(window_.childAt(now->geometry().center())))
            << "from " << qPrintable(dock->objectName()) << " to " << qPrintable(now->objectName());
        if (now != dock) entered.insert(now);
      }
    }
  }
  EXPECT_GE(entered.size(), 2U) << "no more than Scenario and Plans are seen beside another view";
}

// Tab moves through the window, and the arrow keys move through a table.
TEST_F(WindowFocusTest, TabLeavesATableAndArrowsMoveInIt) {
  show_plans();
  auto& table = find<QTableView>("plans_table");
  window_.raise_view(u"plans"_s);
  table.setFocus();
  table.setCurrentIndex(table.model()->index(0, 0));
  QTest::keyClick(&table, Qt::Key_Down);
  QTest::keyClick(&table, Qt::Key_Down);
  EXPECT_EQ(table.currentIndex().row(), 2);
  EXPECT_EQ(window_.selection().chosen(), std::optional<std::size_t>(2));
  for (const auto& [key, modifier] :
       {std::pair(Qt::Key_Tab, Qt::NoModifier), std::pair(Qt::Key_Backtab, Qt::ShiftModifier)}) {
    table.setFocus();
    QTest::keyClick(&table, key, modifier);
    EXPECT_FALSE(table.hasFocus());
    EXPECT_EQ(table.currentIndex().row(), 2);
  }
  for (const QTableView* each : window_.findChildren<QTableView*>())
    EXPECT_FALSE(each->tabKeyNavigation()) << qPrintable(each->objectName());
}

TEST_F(WindowFocusTest, EscInALineGivesTheFocusBackToWhatItSearches) {
  show_plans();
  window_.raise_view(u"timeline"_s);
  ASSERT_TRUE(is_idle());
  QWidget& canvas = window_.findChild<TimelineView*>()->canvas();
  ASSERT_TRUE(canvas.hasFocus());
  QTest::keyClick(&canvas, Qt::Key_F, Qt::ControlModifier);
  ASSERT_FALSE(canvas.hasFocus());
  QTest::keyClicks(QApplication::focusWidget(), u"qkv"_s);
  QTest::keyClick(QApplication::focusWidget(), Qt::Key_Escape);
  EXPECT_TRUE(canvas.hasFocus());
  trigger("edit.filter");
  QTest::keyClicks(QApplication::focusWidget(), u"dp>=1"_s);
  EXPECT_EQ(find<QLineEdit>("filter").text(), u"dp>=1"_s);
  QTest::keyClick(QApplication::focusWidget(), Qt::Key_Escape);
  EXPECT_TRUE(find<QTableView>("plans_table").hasFocus());
}

TEST_F(WindowFocusTest, AViewThatGoesBehindAnotherLosesTheFocusToIt) {
  show_plans();
  window_.raise_view(u"topology"_s);
  auto* schedule = window_.findChild<QDockWidget*>(u"schedule"_s);
  for (QTabBar* tabs : window_.findChildren<QTabBar*>()) {
    for (int i = 0; i < tabs->count(); ++i) {
      if (tabs->parent() == &window_ && tabs->tabText(i) == schedule->windowTitle())
        QTest::mouseClick(tabs, Qt::LeftButton, {}, tabs->tabRect(i).center());
    }
  }
  ASSERT_FALSE(schedule->visibleRegion().isEmpty());
  EXPECT_TRUE(schedule->isAncestorOf(QApplication::focusWidget()));
}

TEST_F(WindowFocusTest, WhatIsCopiedIsOfAViewInFront) {
  show_plans();
  window_.raise_view(u"run"_s);
  // The view comes to the front without a command of the window.
  window_.findChild<QDockWidget*>(u"why"_s)->raise();
  QCoreApplication::processEvents();
  trigger("edit.copy_data");
  EXPECT_TRUE(QGuiApplication::clipboard()->text().startsWith(u"Of\tPart"_s));
  window_.raise_view(u"run"_s);
  window_.findChild<QDockWidget*>(u"run"_s)->close();
  QCoreApplication::processEvents();
  trigger("edit.copy_data");
  EXPECT_FALSE(said().contains(u"Run has no data"_s));
}

// Keys of commands are no text of the first field.
TEST_F(WindowFocusTest, AFreshWindowTakesTheKeysOfItsCommands) {
  QTest::keyClick(QApplication::focusWidget(), '?');
  EXPECT_TRUE(find<ShortcutOverlay>("shortcuts").isVisible());
  EXPECT_EQ(window_.document().choice(), ScenarioChoice());
}

}  // namespace
}  // namespace shardwright::gui
