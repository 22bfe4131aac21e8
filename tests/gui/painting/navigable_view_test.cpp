#include "gui/painting/navigable_view.hpp"

#include <gtest/gtest.h>

#include <QHelpEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>

#include "tests/gui/painted_view_test.hpp"

namespace shardwright::gui {
namespace {

using gui::fixtures::colours_in;
using gui::fixtures::drag;
using gui::fixtures::move_mouse;
using gui::fixtures::shown;
using gui::fixtures::turn_wheel;

constexpr double kEnd = 10.0;
constexpr double kRowsHeight = 900.0;

// Ten boxes of one second each, in rows that are higher than the viewport. The left 100 pixels are
// names, from which a drag is the view's own. As a map it shows 600 x 900 pixels.
class Boxes : public NavigableView<PaintedScene<int>> {
 public:
  explicit Boxes(bool is_map = false)
      : NavigableView(u"Boxes"_s, is_map ? Zoom::Both : Zoom::Horizontal, nullptr),
        is_map_(is_map) {
    on_keys({Qt::Key_Left}, [this] { ++own_keys; });
    on_keys({Qt::ALT | Qt::Key_Left}, [this] { own_keys += 10; });
    start_with(kEnd);
    shown(*this, {500, 300});
  }

  std::optional<int> item_at(const QPointF& position) const override {
    if (!plot().contains(position)) return std::nullopt;
    return static_cast<int>(scene().window.value_at(position.x() - 100.0, plot().width()));
  }
  QRectF plot() const override {
    return {100.0, 0.0, viewport()->width() - 100.0, static_cast<double>(viewport()->height())};
  }

  bool has_content = true;
  int selections = 0, own_drags = 0, ended_drags = 0, cancelled_drags = 0, own_keys = 0;

 protected:
  bool is_empty() const override { return !has_content; }
  void paint(QPainter& painter) override {
    painter.fillRect(plot(), Qt::red);
    if (scene().selected) painter.fillRect(QRectF(120.0, 10.0, 20.0, 20.0), Qt::green);
  }
  QString tool_tip_at(const QPointF& position) const override {
    const auto item = item_at(position);
    return item ? u"box %1"_s.arg(*item) : QString();
  }
  void lay_out() override {
    if (is_map_) return start_with(QSizeF(600.0, kRowsHeight));
    set_rows_height(kRowsHeight);
  }
  void selection_changed() override { ++selections; }
  bool begin_drag(const QPointF& position) override { return position.x() < 100.0; }
  void drag_to(const QPointF&) override { ++own_drags; }
  void end_drag(const QPointF&) override { ++ended_drags; }
  void cancel_drag() override { ++cancelled_drags; }
  bool wheel_zooms_at(const QPointF& position) const override { return position.y() < 50.0; }
  bool double_click_fits_at(const QPointF& position) const override { return position.x() > 100.0; }

 private:
  bool is_map_;
};

class NavigableViewTest : public ::testing::Test {
 protected:
  QWidget& paper() { return *view_.viewport(); }
  const AxisWindow& window() { return view_.scene().window; }
  const AxisWindow& rows() { return view_.scene().rows; }
  double value_at(double x) { return window().value_at(x - 100.0, view_.plot().width()); }
  void press(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QTest::keyClick(&view_, key, modifiers);
  }

  Boxes view_;
};

TEST_F(NavigableViewTest, TheWheelZoomsAboutTheCursorPansAndScrolls) {
  const double value = value_at(300.0);
  turn_wheel(paper(), {300.0, 200.0}, 4, Qt::ControlModifier);
  EXPECT_LT(window().length(), 0.5 * kEnd);
  EXPECT_NEAR(value_at(300.0), value, 1e-9);
  const AxisWindow zoomed = window();
  turn_wheel(paper(), {300.0, 200.0}, -1, Qt::ShiftModifier);
  EXPECT_NEAR(window().from - zoomed.from, 0.15 * zoomed.length(), 1e-9);
  EXPECT_EQ(rows().from, 0.0);
  turn_wheel(paper(), {300.0, 200.0}, -1);
  EXPECT_EQ(rows().from, 60.0);
  turn_wheel(paper(), {300.0, 20.0}, 1);
  EXPECT_LT(window().length(), zoomed.length());
  EXPECT_EQ(rows().from, 60.0);
}

TEST_F(NavigableViewTest, MiddleAndShiftDragsPanBothWays) {
  for (const auto& [button, modifier] : {std::pair(Qt::MiddleButton, Qt::NoModifier),
                                         std::pair(Qt::LeftButton, Qt::ShiftModifier)}) {
    view_.show_window(4.0, 5.0);
    const double value = value_at(300.0), scrolled = rows().from;
    drag(paper(), {300, 200}, {260, 170}, button, modifier);
    EXPECT_NEAR(value_at(260.0), value, 1e-9);
    EXPECT_EQ(rows().from, scrolled + 30.0);
    EXPECT_FALSE(view_.scene().selected.has_value());
  }
}

TEST_F(NavigableViewTest, KeysZoomPanFitAndReturn) {
  move_mouse(paper(), view_.plot().center(), Qt::NoButton);
  press(Qt::Key_W);
  EXPECT_NEAR(window().length(), kEnd / 1.5, 1e-9);
  EXPECT_NEAR(window().middle(), 0.5 * kEnd, 1e-9);
  const AxisWindow zoomed = window();
  press(Qt::Key_D);
  EXPECT_NEAR(window().from - zoomed.from, 0.15 * zoomed.length(), 1e-9);
  press(Qt::Key_Left, Qt::ShiftModifier);
  EXPECT_NEAR(window().from, zoomed.from, 1e-9);
  press(Qt::Key_Down, Qt::ShiftModifier);
  EXPECT_GT(rows().from, 0.0);
  press(Qt::Key_S);
  press(Qt::Key_Minus);
  EXPECT_TRUE(window().shows_all());
  press(Qt::Key_Plus);
  view_.show_window(2.0, 3.0);
  press(Qt::Key_Home);
  EXPECT_TRUE(window().shows_all());
  press(Qt::Key_Backspace);
  EXPECT_NEAR(window().from, 2.0, 1e-9);
  press(Qt::Key_Backspace);
  EXPECT_NEAR(window().length(), kEnd / 1.5, 1e-9);
  for (int i = 0; i < 3; ++i) press(Qt::Key_Backspace);
  EXPECT_NEAR(window().length(), kEnd / 1.5, 1e-9);
}

TEST_F(NavigableViewTest, AViewHasKeysOfItsOwnAndShortcutsOfTheWindowPass) {
  press(Qt::Key_Left);
  EXPECT_EQ(view_.own_keys, 1);
  press(Qt::Key_Left, Qt::AltModifier);
  EXPECT_EQ(view_.own_keys, 11);
  press(Qt::Key_W, Qt::ControlModifier);
  EXPECT_TRUE(window().shows_all());
  press(Qt::Key_W, Qt::ShiftModifier);
  EXPECT_FALSE(window().shows_all());
}

TEST_F(NavigableViewTest, PointsAtAndSelectsItems) {
  move_mouse(paper(), {300.0, 200.0}, Qt::NoButton);
  EXPECT_EQ(view_.scene().hovered, view_.item_at({300.0, 200.0}));
  ASSERT_TRUE(view_.scene().hovered.has_value());
  QTest::mouseClick(&paper(), Qt::LeftButton, {}, {300, 200});
  EXPECT_EQ(view_.scene().selected, view_.scene().hovered);
  QTest::mouseClick(&paper(), Qt::LeftButton, {}, {302, 200});
  EXPECT_EQ(view_.selections, 1);
  QEvent leave(QEvent::Leave);
  QApplication::sendEvent(&paper(), &leave);
  EXPECT_FALSE(view_.scene().hovered.has_value());
  press(Qt::Key_Escape);
  EXPECT_FALSE(view_.scene().selected.has_value());
  QTest::mouseClick(&paper(), Qt::LeftButton, {}, {300, 200});
  QTest::mouseClick(&paper(), Qt::LeftButton, {}, {50, 200});
  EXPECT_FALSE(view_.scene().selected.has_value());
  EXPECT_EQ(view_.selections, 4);
}

TEST_F(NavigableViewTest, AViewsOwnDragEndsOnceOrIsLeftByEsc) {
  drag(paper(), {50, 100}, {50, 200}, Qt::LeftButton);
  EXPECT_GT(view_.own_drags, 0);
  EXPECT_EQ(view_.ended_drags, 1);
  EXPECT_EQ(view_.selections, 0);
  QTest::mousePress(&paper(), Qt::LeftButton, {}, {50, 100});
  move_mouse(paper(), {50.0, 150.0}, Qt::LeftButton);
  press(Qt::Key_Escape);
  QTest::mouseRelease(&paper(), Qt::LeftButton, {}, {50, 150});
  EXPECT_EQ(view_.cancelled_drags, 1);
  EXPECT_EQ(view_.ended_drags, 1);
}

TEST_F(NavigableViewTest, ADoubleClickFits) {
  view_.show_window(2.0, 3.0);
  QTest::mouseDClick(&paper(), Qt::LeftButton, {}, {50, 200});
  EXPECT_FALSE(window().shows_all());
  QTest::mouseDClick(&paper(), Qt::LeftButton, {}, {300, 200});
  EXPECT_TRUE(window().shows_all());
}

TEST_F(NavigableViewTest, ScrollBarsFollowAndLead) {
  view_.show_window(5.0, 6.0);
  EXPECT_GT(view_.horizontalScrollBar()->value(), 0);
  view_.horizontalScrollBar()->setValue(0);
  EXPECT_EQ(window().from, 0.0);
  EXPECT_NEAR(window().length(), 1.0, 1e-9);
  view_.verticalScrollBar()->setValue(view_.verticalScrollBar()->maximum());
  EXPECT_EQ(rows().to, kRowsHeight);
  // A higher viewport shows the rows to their end.
  view_.resize(500, 800);
  EXPECT_EQ(rows().to, kRowsHeight);
  EXPECT_EQ(rows().length(), paper().height());
}

TEST_F(NavigableViewTest, ToolTipsAndTheFocusAreShown) {
  const auto tip = [this] {
    QHelpEvent help(QEvent::ToolTip, QPoint(300, 200), paper().mapToGlobal(QPoint(300, 200)));
    QApplication::sendEvent(&paper(), &help);
    return QToolTip::text();
  };
  EXPECT_EQ(tip().toStdString(), "box 5");
  view_.has_content = false;
  EXPECT_TRUE(QTest::qWaitFor([&] { return tip().isEmpty(); }));
  view_.has_content = true;
  view_.activateWindow();
  view_.setFocus();
  ASSERT_TRUE(QTest::qWaitFor([&] { return view_.hasFocus(); }));
  const QColor corner = paper().grab().toImage().pixelColor(0, 0);
  view_.clearFocus();
  EXPECT_NE(paper().grab().toImage().pixelColor(0, 0), corner);
}

TEST_F(NavigableViewTest, NothingMovesWithoutContent) {
  view_.has_content = false;
  for (const Qt::Key key : {Qt::Key_W, Qt::Key_Home, Qt::Key_Left, Qt::Key_Escape}) press(key);
  turn_wheel(paper(), {300.0, 200.0}, 1, Qt::ControlModifier);
  QTest::mouseClick(&paper(), Qt::LeftButton, {}, {300, 200});
  QTest::mouseDClick(&paper(), Qt::LeftButton, {}, {300, 200});
  EXPECT_TRUE(window().shows_all());
  EXPECT_EQ(view_.selections, 0);
  EXPECT_EQ(colours_in(paper()), 1U);
}

// A map begins unzoomed with its corner, zooms both axes equally, and is dragged.
TEST(NavigableMap, ZoomsBothAxesAndIsDragged) {
  Boxes map(true);
  QWidget& paper = *map.viewport();
  const PaintedScene<int>& scene = map.scene();
  EXPECT_EQ(scene.window, (AxisWindow{0.0, 400.0, 600.0}));
  EXPECT_EQ(scene.rows, (AxisWindow{0.0, 300.0, kRowsHeight}));
  turn_wheel(paper, {300.0, 150.0}, 3, Qt::ControlModifier);
  EXPECT_NEAR(scene.window.length() / 400.0, scene.rows.length() / 300.0, 1e-12);
  EXPECT_NEAR(scene.rows.value_at(150.0, 300.0), 150.0, 1e-9);
  const AxisWindow window = scene.window, rows = scene.rows;
  drag(paper, {300, 150}, {260, 120}, Qt::LeftButton);
  const double per_pixel = window.length() / 400.0;
  EXPECT_NEAR(scene.window.from - window.from, 40.0 * per_pixel, 1e-9);
  EXPECT_NEAR(scene.rows.from - rows.from, 30.0 * per_pixel, 1e-9);
  turn_wheel(paper, {300.0, 150.0}, -40, Qt::ControlModifier);
  EXPECT_NEAR(scene.window.length(), 400.0, 1e-9);
  turn_wheel(paper, {300.0, 150.0}, 40, Qt::ControlModifier);
  EXPECT_NEAR(scene.window.length(), 50.0, 1e-9);
  const AxisWindow close = scene.rows;
  QTest::keyClick(&map, Qt::Key_Home);
  EXPECT_EQ(scene.window, (AxisWindow{0.0, 400.0, 600.0}));
  QTest::keyClick(&map, Qt::Key_Backspace);
  EXPECT_EQ(scene.rows, close);
}

}  // namespace
}  // namespace shardwright::gui
