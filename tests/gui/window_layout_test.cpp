#include <QApplication>
#include <QDockWidget>
#include <QFontInfo>
#include <QLabel>
#include <QScreen>
#include <QScrollArea>
#include <QScrollBar>
#include <QSettings>
#include <QStyle>
#include <QTabBar>
#include <QTableView>

#include "gui/models/chosen_request.hpp"
#include "gui/painting/navigable_view.hpp"
#include "gui/views/chart.hpp"
#include "gui/views/empty_state.hpp"
#include "gui/views/step_charts.hpp"
#include "tests/gui/painted_view_test.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

class WindowLayoutTest : public WindowTest {
 protected:
  // Returns the tabs of the docks that share a place.
  const QTabBar* dock_tabs() const {
    for (const QTabBar* tabs : window_.findChildren<QTabBar*>()) {
      if (tabs->parent() == &window_ && tabs->isVisible()) return tabs;
    }
    return nullptr;
  }
};

TEST_F(WindowLayoutTest, ColumnsOfPlansFitLettersThatGrowWhileTheWindowIsOpen) {
  show_plans();
  auto& table = find<QTableView>("plans_table");
  QFont larger = window_.font();
  larger.setPixelSize(18);
  window_.setFont(larger);
  QCoreApplication::processEvents();
  const QFontMetrics metrics(table.font());
  ASSERT_EQ(table.font().pixelSize(), 18);
  EXPECT_GE(table.rowHeight(0), metrics.height());
  for (int column = 0; column < table.model()->columnCount(); ++column) {
    if (table.isColumnHidden(column)) continue;
    for (int row = 0; row < table.model()->rowCount(); ++row) {
      const QString text = table.model()->index(row, column).data().toString();
      EXPECT_GT(table.columnWidth(column), metrics.horizontalAdvance(text)) << qPrintable(text);
    }
  }
}

TEST_F(WindowLayoutTest, TheChosenRowStaysInSightAsTheTableGetsItsFormerHeight) {
  show_plans();
  window_.raise_view(u"plans"_s);
  auto& table = find<QTableView>("plans_table");
  const auto row = [&] { return table.visualRect(table.currentIndex()); };
  QTest::keyClick(&window_, Qt::Key_F11);
  QCoreApplication::processEvents();
  const QModelIndex last = table.indexAt({5, table.viewport()->height() - 5});
  const QModelIndex lowest = last.isValid()
                                 ? last.siblingAtRow(last.row() - 1)
                                 : table.model()->index(table.model()->rowCount() - 1, 0);
  QTest::mouseClick(table.viewport(), Qt::LeftButton, {}, table.visualRect(lowest).center());
  ASSERT_EQ(table.currentIndex().row(), lowest.row());
  const int high = table.viewport()->height();
  QTest::keyClick(&window_, Qt::Key_F11);
  QCoreApplication::processEvents();
  ASSERT_LT(table.viewport()->height(), high);
  ASSERT_TRUE(wait_for([&] { return table.viewport()->rect().contains(row().center()); }));
  EXPECT_GE(row().top(), 0);
  EXPECT_LE(row().bottom(), table.viewport()->rect().bottom());
}

// No view is so wide that the window would have to cut it.
TEST_F(WindowLayoutTest, TheLeastWindowHasRoomForEachView) {
  show_plans();
  window_.resize(window_.minimumSize());
  for (const QDockWidget* dock : window_.docks()) {
    window_.raise_view(dock->objectName());
    ASSERT_TRUE(is_idle());
    QCoreApplication::processEvents();
    EXPECT_TRUE(window_.rect().contains(dock->geometry())) << qPrintable(dock->objectName());
    EXPECT_LE(dock->widget()->width(), dock->width()) << qPrintable(dock->objectName());
    const auto* empty = dock->widget()->findChild<EmptyState*>();
    if (empty == nullptr || !empty->is_empty()) continue;
    const QRect seen = empty->findChild<QLabel*>(u"hint"_s)->visibleRegion().boundingRect();
    EXPECT_GT(seen.height(), 60) << qPrintable(dock->objectName());
  }
}

// The screen of the offscreen platform has 800 × 800 pixels.
TEST(FirstWindow, FitsItsScreen) {
  MainWindow window;
  window.show();
  QCoreApplication::processEvents();
  const QSize screen = window.screen()->availableSize();
  ASSERT_LT(screen.width(), 1440);
  EXPECT_EQ(window.frameSize().boundedTo(screen), window.frameSize());
  window.selection().show(small_set());
  for (const QDockWidget* dock : window.docks()) {
    window.raise_view(dock->objectName());
    ASSERT_TRUE(wait_for([&] { return !window.is_busy(); }));
    QCoreApplication::processEvents();
    EXPECT_TRUE(window.rect().contains(dock->geometry())) << qPrintable(dock->objectName());
    // Nothing is cut off at a side where no bar scrolls.
    for (const QScrollArea* area : dock->findChildren<QScrollArea*>()) {
      if (area->horizontalScrollBarPolicy() == Qt::ScrollBarAlwaysOff) {
        EXPECT_LE(area->widget()->width(), area->viewport()->width())
            << qPrintable(dock->objectName());
      }
    }
  }
}

TEST(FirstWindow, ShowsWhyWholeOnALowScreen) {
  MainWindow window;
  window.resize(1280, 720);
  window.show();
  window.actions().find(u"view.reset"_s)->trigger();
  window.selection().show(small_set());
  QCoreApplication::processEvents();  // The view begins to compute what it shows.
  ASSERT_TRUE(wait_for([&] { return !window.is_busy(); }));
  QCoreApplication::processEvents();
  EXPECT_EQ(window.view(u"why"_s)->findChild<QScrollArea*>()->verticalScrollBar()->maximum(), 0);
  const auto& table = *window.findChild<QTableView*>(u"plans_table"_s);
  EXPECT_GT(table.viewport()->height(), 4 * table.rowHeight(0));
}

// A window that is low for its letters shows one view at a time, so that neither legends nor fields
// take the room of a picture.
TEST(FirstWindow, LeavesRoomForPicturesBesideLargeLetters) {
  const QFont usual = QApplication::font();
  QFont larger = usual;
  larger.setPointSizeF(1.5 * QFontInfo(usual).pointSizeF());
  QApplication::setFont(larger);
  {
    MainWindow window;
    window.resize(1280, 696);
    window.show();
    window.selection().show(small_set());
    for (const QDockWidget* dock : window.docks()) {
      if (dock->objectName() == u"scenario"_s || dock->objectName() == u"run"_s) continue;
      window.raise_view(dock->objectName());
      QCoreApplication::processEvents();  // The view begins to compute what it shows.
      ASSERT_TRUE(wait_for([&] { return !window.is_busy(); }));
      QCoreApplication::processEvents();
      // A plan of one stage has no schedule.
      if (qobject_cast<View*>(dock->widget())->report().empty()) continue;
      int most = 0;
      const auto look_at = [&](const QWidget* picture) {
        most = std::max(most, picture->visibleRegion().boundingRect().height());
      };
      for (const Chart* chart : dock->findChildren<Chart*>()) look_at(chart);
      for (const NavigableArea* area : dock->findChildren<NavigableArea*>()) {
        look_at(area->viewport());
        EXPECT_EQ(area->isVisible() ? area->hidden_height() : 0, 0)
            << qPrintable(dock->objectName());
      }
      EXPECT_GT(most, 10 * window.fontMetrics().height()) << qPrintable(dock->objectName());
    }
    // Plans lie in a table above their plot, both of which can be used without scrolling.
    window.raise_view(u"plans"_s);
    QCoreApplication::processEvents();
    const auto* plot = window.findChild<QWidget*>(u"scatter"_s);
    EXPECT_EQ(plot->visibleRegion().boundingRect(), plot->rect());
    const auto* table = window.findChild<QTableView*>(u"plans_table"_s);
    EXPECT_GE(table->viewport()->visibleRegion().boundingRect().height(), 3 * table->rowHeight(0));
  }
  QApplication::setFont(usual);
}

TEST_F(WindowLayoutTest, ResettingItGivesTheDocksTheirFirstSizes) {
  QCoreApplication::processEvents();
  const auto sizes = [this] {
    std::vector<QSize> all;
    for (const char* id : {"scenario", "plans", "why"})
      all.push_back(window_.findChild<QDockWidget*>(to_qstring(id))->size());
    return all;
  };
  const std::vector<QSize> first = sizes();
  window_.resizeDocks({window_.docks()[0]}, {480}, Qt::Horizontal);
  window_.resizeDocks({window_.docks()[1]}, {180}, Qt::Vertical);
  QCoreApplication::processEvents();
  ASSERT_NE(sizes(), first);
  trigger("view.reset");
  QCoreApplication::processEvents();
  const std::vector<QSize> again = sizes();
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_NEAR(again[i].width(), first[i].width(), 2) << i;
    EXPECT_NEAR(again[i].height(), first[i].height(), 2) << i;
  }
}

TEST(FirstWindow, OfASessionOnALargerScreenFitsThisOne) {
  const QTemporaryDir folder;
  QSettings settings(folder.filePath(u"session.ini"_s), QSettings::IniFormat);
  {
    MainWindow window(&settings);
    window.resize(1440, 900);
    window.show();
    window.close();
  }
  MainWindow window(&settings);
  window.show();
  const QSize screen = window.screen()->availableSize();
  EXPECT_EQ(window.frameSize().boundedTo(screen), window.frameSize());
}

// A wider window gives its gain to the views, however narrow it was before.
TEST_F(WindowLayoutTest, ScenarioKeepsItsWidth) {
  show_plans();
  QDockWidget* scenario = window_.docks().front();
  const auto width_after = [&](const std::vector<int>& widths) {
    for (const int width : widths) {
      window_.resize(width, 900);
      QCoreApplication::processEvents();
    }
    return scenario->width();
  };
  const int width = width_after({1440});
  EXPECT_LT(width, 1440 / 3);
  EXPECT_EQ(width_after({1000, 640, 1440}), width);
  EXPECT_EQ(width_after({1000, 1440}), width);
  window_.resizeDocks({scenario, window_.docks()[1]}, {500, 900}, Qt::Horizontal);
  QCoreApplication::processEvents();
  const int wider = scenario->width();
  EXPECT_GT(wider, width + 100);
  EXPECT_EQ(width_after({800, 1440}), wider);
}

// The views show their hints before there is a plan or a run.
TEST_F(WindowLayoutTest, HintsOfEmptyViewsAreInSight) {
  for (const bool has_plans : {false, true}) {
    if (has_plans) show_plans();
    for (const QSize size : {QSize(1440, 900), QSize(1000, 640), QSize(1440, 900)}) {
      window_.resize(size);
      for (const QDockWidget* dock : window_.docks()) {
        window_.raise_view(dock->objectName());
        ASSERT_TRUE(is_idle());
        const auto* empty = dock->widget()->findChild<EmptyState*>();
        if (empty == nullptr || !empty->is_empty()) continue;
        const auto* hint = empty->findChild<QLabel*>(u"hint"_s);
        EXPECT_TRUE(wait_for([&] { return hint->visibleRegion().contains(hint->rect().center()); }))
            << qPrintable(dock->objectName()) << ", " << size.width();
      }
    }
  }
}

TEST_F(WindowLayoutTest, TabsKeepTheirTitlesAndTheOneInFrontIsSeen) {
  for (const QSize size : {QSize(640, 480), QSize(1000, 700), QSize(1440, 900)}) {
    window_.resize(size);
    for (const QDockWidget* dock : window_.docks()) {
      window_.raise_view(dock->objectName());
      QCoreApplication::processEvents();
      const QTabBar* tabs = dock_tabs();
      ASSERT_NE(tabs, nullptr);
      const int around = tabs->style()->pixelMetric(QStyle::PM_TabBarTabHSpace, nullptr, tabs);
      for (int i = 0; i < tabs->count(); ++i) {
        const QString title = tabs->tabText(i);
        EXPECT_GE(tabs->tabRect(i).width(), tabs->fontMetrics().horizontalAdvance(title) + around)
            << qPrintable(title) << ", " << size.width();
        if (title == dock->windowTitle()) {
          EXPECT_TRUE(tabs->rect().contains(tabs->tabRect(i)))
              << qPrintable(title) << ", " << size.width();
        }
      }
    }
  }
}

TEST_F(WindowLayoutTest, TheWheelScrollsPastChartsThatItDoesNotZoom) {
  show_plans();
  window_.resize(1000, 640);
  window_.raise_view(u"why"_s);
  ASSERT_TRUE(is_idle());
  QCoreApplication::processEvents();
  QScrollBar& bar = *window_.view(u"why"_s)->findChild<QScrollArea*>()->verticalScrollBar();
  ASSERT_GT(bar.maximum(), 0);
  auto& memory = find<MemoryChart>("memory");
  for (const QRect& part : {memory.legend->outerRect(), memory.axisRect()->rect()}) {
    bar.setValue(0);
    fixtures::turn_wheel(memory, part.center(), -1);
    EXPECT_GT(bar.value(), 0);
  }
}

class WhyInItsFirstWindow : public WindowLayoutTest {
 protected:
  // Shows a plan with a warning and with the moment of its peak in a window of this height.
  void expect_whole_charts(PlanSet set, int height) {
    window_.resize(1440, height);
    window_.selection().show(std::make_shared<const PlanSet>(std::move(set)));
    window_.raise_view(u"why"_s);
    ASSERT_TRUE(is_idle());
    ASSERT_TRUE(find<QLabel>("why_memory_warning").isVisible());
    ASSERT_TRUE(find<QLabel>("why_peak").text().contains(u"while"_s));
    const auto* area = window_.view(u"why"_s)->findChild<QScrollArea*>();
    QCoreApplication::processEvents();
    EXPECT_EQ(area->verticalScrollBar()->maximum(), 0) << "pixels are out of sight";
    for (const char* chart : {"waterfall", "memory", "sensitivity"}) {
      const auto* seen = window_.view(u"why"_s)->findChild<QWidget*>(to_qstring(chart));
      ASSERT_NE(seen, nullptr) << chart;
      EXPECT_EQ(seen->visibleRegion().boundingRect(), seen->rect()) << chart;
    }
  }
};

// Why shows all that it can say about a plan of the worked example.
TEST_F(WhyInItsFirstWindow, APlanOfTheWorkedExampleIsShownWhole) {
  const planner::PlanRequest request = load_request(ScenarioChoice());
  Scenario scenario{request.model, request.cluster, request.stack, {}};
  scenario.plan.dp = 32;
  scenario.plan.tp = scenario.plan.pp = 4;
  scenario.plan.vpp = 10;
  scenario.plan.schedule = ScheduleKind::Interleaved;
  scenario.plan.global_batch = 8 * scenario.plan.dp;  // Few microbatches are soon simulated.
  scenario.plan.seq_len = request.seq_len;
  PlanSet set = plan_set_of(scenario, u"a test"_s);
  set.request.cluster.accelerator.memory = set.plans.front().result.memory().peak;
  expect_whole_charts(std::move(set), 900);
}

// The frame of a window manager takes some of the screen.
TEST_F(WhyInItsFirstWindow, APlanWithManyKindsOfMemoryIsShownWhole) {
  Scenario scenario{
      load_model("llama3.1-405b"), load_cluster("dgx-h100"), load_stack("megatron-core"), {}};
  Plan& plan = scenario.plan;
  plan.dp = 64;
  plan.tp = 8;
  plan.pp = 16;
  plan.cp = 2;
  plan.vpp = 2;
  plan.zero_stage = 1;
  plan.schedule = ScheduleKind::Interleaved;
  plan.embedding_counts_as_layer = true;
  plan.global_batch = 16 * plan.dp;
  plan.seq_len = 8192;
  expect_whole_charts(plan_set_of(scenario, u"a test"_s), 870);
  EXPECT_GE(find<MemoryChart>("memory").plottableCount(), 10);
}

}  // namespace
}  // namespace shardwright::gui
