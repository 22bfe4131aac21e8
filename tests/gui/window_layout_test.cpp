// What is seen of the views in windows of several sizes.
#include <QDockWidget>
#include <QLabel>

#include "gui/views/empty_state.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

class WindowLayoutTest : public WindowTest {};

// No view is so wide that the window would have to cut it.
TEST_F(WindowLayoutTest, TheLeastWindowHasRoomForEachView) {
  show_plans();
  window_.resize(window_.minimumSize());
  for (const QDockWidget* dock : window_.docks()) {
    window_.raise_view(dock->objectName());
    ASSERT_TRUE(wait_for([&] { return !window_.is_busy(); }));
    QCoreApplication::processEvents();
    EXPECT_TRUE(window_.rect().contains(dock->geometry())) << qPrintable(dock->objectName());
    EXPECT_LE(dock->widget()->width(), dock->width()) << qPrintable(dock->objectName());
    const auto* empty = dock->widget()->findChild<EmptyState*>();
    if (empty == nullptr || !empty->is_empty()) continue;
    const QRect seen = empty->findChild<QLabel*>(id("hint"))->visibleRegion().boundingRect();
    EXPECT_GT(seen.height(), 60) << qPrintable(dock->objectName());
  }
}

// What the window gains goes to the views, however narrow it was before.
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

// Before there is a plan, and before there is a run.
TEST_F(WindowLayoutTest, HintsOfEmptyViewsAreInSight) {
  for (const bool has_plans : {false, true}) {
    if (has_plans) show_plans();
    for (const QSize size : {QSize(1440, 900), QSize(1000, 640), QSize(1440, 900)}) {
      window_.resize(size);
      for (const QDockWidget* dock : window_.docks()) {
        window_.raise_view(dock->objectName());
        ASSERT_TRUE(wait_for([&] { return !window_.is_busy(); }));
        const auto* empty = dock->widget()->findChild<EmptyState*>();
        if (empty == nullptr || !empty->is_empty()) continue;
        const auto* hint = empty->findChild<QLabel*>(id("hint"));
        EXPECT_TRUE(wait_for([&] { return hint->visibleRegion().contains(hint->rect().center()); }))
            << qPrintable(dock->objectName()) << ", " << size.width();
      }
    }
  }
}

}  // namespace
}  // namespace shardwright::gui
