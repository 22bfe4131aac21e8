#include "gui/timeline/timeline_view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QFile>
#include <QHelpEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QScrollBar>
#include <QSettings>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QToolButton>
#include <QToolTip>
#include <set>

#include "gui/views/empty_state.hpp"
#include "gui/views/picture_export.hpp"
#include "tests/gui/example_step.hpp"
#include "tests/gui/painted_view_test.hpp"

namespace shardwright::gui {
namespace {

using gui::testing::colours_in;
using gui::testing::drag;
using gui::testing::measured;
using gui::testing::move_mouse;
using gui::testing::shown;
using gui::testing::small_step;
using gui::testing::turn_wheel;

class TimelineViewTest : public ::testing::Test {
 protected:
  TimelineViewTest() {
    const DeviceLimits limits{gigabytes(80.0), FlopPerSecond(989e12), BytesPerSecond(450e9),
                              BytesPerSecond(50e9)};
    view_.set_timelines({small_step().timeline}, small_step().program, limits);
    shown(view_, {1000, 600});
  }

  TimelineCanvas& canvas() { return view_.canvas(); }
  QWidget& paper() { return *canvas().viewport(); }
  const TimeWindow& window() const { return view_.canvas().scene().window; }
  TimelineGeometry geometry() { return TimelineGeometry(QSizeF(paper().size())); }
  double time_at(double x) {
    return window().time_at(x - geometry().plot.left(), geometry().plot.width());
  }
  // The middle of a span on the screen.
  QPointF place_of(SpanRef ref) {
    const Track& track = canvas().tracks().tracks()[*canvas().tracks().track_of(ref)];
    const Span& span = canvas().tracks().span(ref);
    const double middle = span.start.value() + 0.5 * span.duration.value();
    return {geometry().plot.left() + window().x_of(middle, geometry().plot.width()),
            geometry().plot.top() + track.y - canvas().scene().scroll + track.height / 2.0};
  }
  void press(Qt::Key key) { QTest::keyClick(&canvas(), key); }

  TimelineView view_;
};

TEST_F(TimelineViewTest, ControlWheelZoomsAboutTheCursor) {
  const QPointF at(600.0, 200.0);
  const double time = time_at(at.x()), before = window().length();
  turn_wheel(paper(), at, 4, Qt::ControlModifier);
  EXPECT_LT(window().length(), 0.5 * before);
  EXPECT_NEAR(time_at(at.x()), time, 1e-6 * before);
  turn_wheel(paper(), at, -20, Qt::ControlModifier);
  EXPECT_TRUE(window().shows_all());
}

TEST_F(TimelineViewTest, WheelScrollsRowsAndZoomsOverTheAxis) {
  shown(view_, {1000, 300});
  const double length = window().length();
  turn_wheel(paper(), {600.0, 200.0}, -1);
  EXPECT_GT(canvas().scene().scroll, 0.0);
  EXPECT_EQ(window().length(), length);
  turn_wheel(paper(), {600.0, 10.0}, 1);
  EXPECT_LT(window().length(), length);
}

TEST_F(TimelineViewTest, ShiftWheelAndMiddleDragPan) {
  const double end = canvas().tracks().end();
  canvas().show_window(0.4 * end, 0.5 * end);
  const TimeWindow before = window();
  turn_wheel(paper(), {600.0, 200.0}, -1, Qt::ShiftModifier);
  EXPECT_GT(window().from, before.from);
  EXPECT_NEAR(window().length(), before.length(), 1e-9);
  canvas().show_window(before.from, before.to);
  const double time = time_at(500.0);
  drag(paper(), {500, 200}, {400, 200}, Qt::MiddleButton);
  EXPECT_NEAR(time_at(400.0), time, 1e-6 * end);
}

TEST_F(TimelineViewTest, DragSelectsARangeWithItsStatistics) {
  QSignalSpy selected(&view_, &TimelineView::range_selected);
  drag(paper(), {300, 200}, {700, 210}, Qt::LeftButton);
  ASSERT_TRUE(canvas().scene().range.has_value());
  EXPECT_NEAR(canvas().scene().range->from, time_at(300.0), 1e-9);
  EXPECT_NEAR(canvas().scene().range->to, time_at(700.0), 1e-9);
  ASSERT_FALSE(selected.isEmpty());
  EXPECT_EQ(selected.back().at(1).toDouble(), canvas().scene().range->to);
  EXPECT_GT(view_.statistics().rowCount(), 3);
  QSignalSpy cleared(&view_, &TimelineView::range_cleared);
  press(Qt::Key_Escape);
  EXPECT_EQ(cleared.size(), 1);
  EXPECT_EQ(view_.statistics().rowCount(), 0);
}

TEST_F(TimelineViewTest, EnterZoomsToTheRangeAndBackspaceGoesBack) {
  const TimeWindow before = window();
  const double end = canvas().tracks().end();
  view_.select_range(0.25 * end, 0.5 * end);
  press(Qt::Key_Return);
  EXPECT_NEAR(window().from, 0.25 * end, 1e-9);
  EXPECT_NEAR(window().to, 0.5 * end, 1e-9);
  press(Qt::Key_Backspace);
  EXPECT_EQ(window(), before);
}

TEST_F(TimelineViewTest, KeysZoomAndPan) {
  const double end = canvas().tracks().end();
  press(Qt::Key_W);
  EXPECT_LT(window().length(), end);
  const double from = window().from;
  press(Qt::Key_D);
  EXPECT_GT(window().from, from);
  press(Qt::Key_A);
  EXPECT_NEAR(window().from, from, 1e-9);
  press(Qt::Key_S);
  press(Qt::Key_Home);
  EXPECT_TRUE(window().shows_all());
}

TEST_F(TimelineViewTest, ClickSelectsTheOpAndFCentresThenFitsIt) {
  const SpanRef ref{0, 200};
  const Span& span = canvas().tracks().span(ref);
  canvas().show_window(span.start.value() - 2e-3, span.end().value() + 1e-3);
  QSignalSpy selected(&view_, &TimelineView::op_selected);
  QTest::mouseClick(&paper(), Qt::LeftButton, {}, place_of(ref).toPoint());
  ASSERT_EQ(selected.size(), 1);
  EXPECT_EQ(canvas().scene().selected, ref);
  const double length = window().length();
  press(Qt::Key_F);
  EXPECT_NEAR(window().from + window().to, (span.start + span.end()).value(), 1e-9);
  EXPECT_NEAR(window().length(), length, 1e-9);
  press(Qt::Key_F);
  EXPECT_NEAR(window().length(), 1.2 * span.duration.value(), 1e-7);
  QTest::mouseDClick(&paper(), Qt::LeftButton, {}, {500, 200});
  EXPECT_TRUE(window().shows_all());
}

TEST_F(TimelineViewTest, ArrowKeysWalkThroughOps) {
  press(Qt::Key_Right);
  ASSERT_TRUE(canvas().scene().selected.has_value());
  const SpanRef first = *canvas().scene().selected;
  press(Qt::Key_Right);
  EXPECT_NE(*canvas().scene().selected, first);
  EXPECT_GE(canvas().tracks().span(*canvas().scene().selected).start,
            canvas().tracks().span(first).start);
  press(Qt::Key_Left);
  EXPECT_EQ(*canvas().scene().selected, first);
  press(Qt::Key_Left);
  EXPECT_EQ(*canvas().scene().selected, first);
  press(Qt::Key_Down);
  EXPECT_NE(canvas().tracks().span(*canvas().scene().selected).stream,
            canvas().tracks().span(first).stream);
  press(Qt::Key_Up);
  EXPECT_EQ(canvas().tracks().span(*canvas().scene().selected).stream,
            canvas().tracks().span(first).stream);
}

TEST_F(TimelineViewTest, FindsOpsAndGoesFromHitToHit) {
  view_.find(QStringLiteral("qkv mb=3 phase=forward"));
  EXPECT_GT(canvas().scene().matches.count(), 0U);
  view_.find_next();
  ASSERT_TRUE(canvas().scene().selected.has_value());
  const SpanRef first = *canvas().scene().selected;
  EXPECT_EQ(canvas().tracks().span(first).microbatch, 3);
  press(Qt::Key_Period);
  EXPECT_NE(*canvas().scene().selected, first);
  press(Qt::Key_Comma);
  EXPECT_EQ(*canvas().scene().selected, first);
  view_.find_previous();
  EXPECT_NE(*canvas().scene().selected, first);
  view_.find(QStringLiteral("nothing-is-called-so"));
  view_.find_next();
  EXPECT_EQ(canvas().scene().matches.count(), 0U);
}

// The entry of the menu at a place, or of one of its submenus; closes the menu.
void choose(QWidget& view, QWidget& paper, const QPointF& place, const QString& text,
            const QString& submenu = {}) {
  QContextMenuEvent event(QContextMenuEvent::Mouse, place.toPoint(),
                          paper.mapToGlobal(place.toPoint()));
  QCoreApplication::sendEvent(&paper, &event);
  const auto menus = view.findChildren<QMenu*>(QString(), Qt::FindDirectChildrenOnly);
  ASSERT_FALSE(menus.isEmpty());
  QMenu* menu = menus.back();
  for (const QAction* action : menu->actions()) {
    if (action->menu() != nullptr && action->text() == submenu) menu = action->menu();
  }
  QAction* wanted = nullptr;
  for (QAction* action : menu->actions()) {
    if (action->text() == text) wanted = action;
  }
  ASSERT_NE(wanted, nullptr) << qPrintable(text);
  wanted->trigger();
  menus.back()->close();
  QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
}

TEST_F(TimelineViewTest, ASpansMenuFiltersAndChipsTakeItBack) {
  const SpanRef span = canvas().tracks().ref(canvas().tracks().tracks()[1], 0);
  const QString kind = QString::fromUtf8(name_of(canvas().tracks().span(span).kind));
  const std::size_t all = canvas().tracks().shown_spans();
  canvas().reveal(span);
  choose(view_, paper(), place_of(span), QStringLiteral("kind=") + kind,
         QStringLiteral("Show only"));
  const std::size_t only = canvas().tracks().shown_spans();
  EXPECT_LT(only, all);
  auto* chip = view_.findChild<QToolButton*>(QStringLiteral("chip_0"));
  ASSERT_NE(chip, nullptr);
  EXPECT_TRUE(chip->isVisible());
  QTest::mouseClick(chip, Qt::LeftButton);
  EXPECT_EQ(canvas().tracks().shown_spans(), all);
  choose(view_, paper(), place_of(span), QStringLiteral("kind=") + kind,
         QStringLiteral("Leave out"));
  EXPECT_EQ(canvas().tracks().shown_spans(), all - only);
}

TEST_F(TimelineViewTest, AClickOnItsNameFoldsARank) {
  const std::size_t all = canvas().tracks().tracks().size();
  const QPoint name(40, static_cast<int>(geometry().plot.top()) + 10);
  QTest::mouseClick(&paper(), Qt::LeftButton, Qt::NoModifier, name);
  EXPECT_LT(canvas().tracks().tracks().size(), all);
  QTest::mouseClick(&paper(), Qt::LeftButton, Qt::NoModifier, name);
  EXPECT_EQ(canvas().tracks().tracks().size(), all);
  choose(view_, paper(), name, QStringLiteral("Fold all others"));
  std::size_t ranks = 0;
  for (const QString& label : view_.ranks()) ranks += canvas().tracks().is_folded(label) ? 0 : 1;
  EXPECT_EQ(ranks, 1U);
  choose(view_, paper(), name, QStringLiteral("Unfold all"));
  EXPECT_EQ(canvas().tracks().tracks().size(), all);
}

TEST_F(TimelineViewTest, APinnedRowStaysInViewAndIsUnpinnedThere) {
  const Track track = canvas().tracks().tracks()[1];
  const QString name = QStringLiteral("%1 · %2").arg(track.rank_label, track.label);
  choose(view_, paper(), QPointF(40, geometry().plot.top() + track.y + 5),
         QStringLiteral("Pin %1 to the top").arg(name));
  canvas().verticalScrollBar()->setValue(canvas().verticalScrollBar()->maximum());
  const QPointF top(40, geometry().plot.top() + 5);
  ASSERT_NE(canvas().track_at(top), nullptr);
  EXPECT_EQ(canvas().track_at(top)->key(), track.key());
  // Its spans are painted there.
  const QImage image =
      paper().grab(QRect(300, static_cast<int>(geometry().plot.top()) + 10, 500, 1)).toImage();
  std::set<QRgb> colours;
  for (int x = 0; x < image.width(); ++x) colours.insert(image.pixel(x, 0));
  EXPECT_GT(colours.size(), 2U);
  choose(view_, paper(), top, QStringLiteral("Unpin %1").arg(name));
  EXPECT_EQ(canvas().tracks().pinned_height(), 0.0);
}

TEST_F(TimelineViewTest, ANameIsDraggedToAnotherPlace) {
  const Track first = canvas().tracks().tracks()[1], second = canvas().tracks().tracks()[2];
  const auto middle = [&](const Track& track) {
    return QPoint(60, static_cast<int>(geometry().plot.top() + track.y + 0.5 * track.height));
  };
  drag(paper(), middle(first), middle(second) + QPoint(0, 4), Qt::LeftButton);
  EXPECT_EQ(canvas().tracks().tracks()[1].key(), second.key());
  EXPECT_EQ(canvas().tracks().tracks()[2].key(), first.key());
  EXPECT_FALSE(canvas().scene().drop_line);
  EXPECT_FALSE(canvas().scene().range);  // no time was selected
  // A rank takes all of its rows along and is not folded by it.
  const QStringList ranks = view_.ranks();
  ASSERT_GT(ranks.size(), 1);
  const Track header = canvas().tracks().tracks().front();
  drag(paper(), middle(header), QPoint(60, static_cast<int>(geometry().plot.bottom()) - 1),
       Qt::LeftButton);
  EXPECT_EQ(view_.ranks().indexOf(ranks.front()), 1);
  EXPECT_FALSE(canvas().tracks().is_folded(ranks.front()));
  choose(view_, paper(), middle(header), QStringLiteral("All rows in their first order"));
  EXPECT_EQ(view_.ranks(), ranks);
  EXPECT_EQ(canvas().tracks().tracks()[1].key(), first.key());
}

TEST_F(TimelineViewTest, EscLeavesADragAsItWas) {
  const Track first = canvas().tracks().tracks()[1];
  const QPoint at(60, static_cast<int>(geometry().plot.top() + first.y) + 5);
  QTest::mousePress(&paper(), Qt::LeftButton, Qt::NoModifier, at);
  move_mouse(paper(), at + QPoint(0, 70), Qt::LeftButton);
  EXPECT_TRUE(canvas().scene().drop_line);
  press(Qt::Key_Escape);
  EXPECT_FALSE(canvas().scene().drop_line);
  QTest::mouseRelease(&paper(), Qt::LeftButton, Qt::NoModifier, at + QPoint(0, 70));
  EXPECT_EQ(canvas().tracks().tracks()[1].key(), first.key());
  EXPECT_FALSE(canvas().tracks().is_reordered());
}

TEST_F(TimelineViewTest, KeysMoveTheRowOfTheChosenOpAndItsRank) {
  const Track row = canvas().tracks().tracks()[1];
  const QStringList ranks = view_.ranks();
  QTest::keyClick(&canvas(), Qt::Key_Down, Qt::AltModifier);  // nothing is chosen
  EXPECT_FALSE(canvas().tracks().is_reordered());
  canvas().select_op(canvas().tracks().ref(row, 0));
  QTest::keyClick(&canvas(), Qt::Key_Down, Qt::AltModifier);
  EXPECT_EQ(canvas().tracks().tracks()[2].key(), row.key());
  QTest::keyClick(&canvas(), Qt::Key_Up, Qt::AltModifier);
  EXPECT_EQ(canvas().tracks().tracks()[1].key(), row.key());
  QTest::keyClick(&canvas(), Qt::Key_Down, Qt::AltModifier | Qt::ShiftModifier);
  EXPECT_EQ(view_.ranks().indexOf(ranks.front()), 1);
  // Kept between sessions.
  const QTemporaryDir folder;
  QSettings settings(folder.filePath(QStringLiteral("s.ini")), QSettings::IniFormat);
  view_.save(settings);
  TimelineView other;
  other.restore(settings);
  other.set_timelines({small_step().timeline});
  EXPECT_EQ(other.ranks(), view_.ranks());
  view_.reset_order();
  EXPECT_EQ(view_.ranks(), ranks);
}

// Everything can be reached in a narrow dock.
TEST_F(TimelineViewTest, ItsButtonsBreakIntoLinesWhereItIsNarrow) {
  const auto buttons = view_.findChildren<QToolButton*>();
  for (const int width : {330, 500, 1400}) {
    view_.resize(width, 500);
    QApplication::processEvents();
    ASSERT_EQ(view_.width(), width);
    for (const QToolButton* button : buttons) {
      if (!button->isVisibleTo(&view_) || button->text().isEmpty()) continue;
      const QRect place(button->mapTo(&view_, QPoint(0, 0)), button->size());
      EXPECT_TRUE(view_.rect().contains(place)) << qPrintable(button->text()) << " at " << width;
      EXPECT_GE(button->width(), button->sizeHint().width()) << qPrintable(button->text());
      for (const QToolButton* other : buttons) {
        const QRect beside(other->mapTo(&view_, QPoint(0, 0)), other->size());
        EXPECT_TRUE(other == button || !other->isVisibleTo(&view_) || !place.intersects(beside));
      }
    }
  }
}

// In the plot a double click fits all, wherever it is.
TEST_F(TimelineViewTest, ADoubleClickInThePlotFoldsNothing) {
  const std::size_t all = canvas().tracks().tracks().size();
  const QPoint header(600, static_cast<int>(geometry().plot.top()) + 10);
  QTest::mouseClick(&paper(), Qt::LeftButton, Qt::NoModifier, header);
  QTest::mouseDClick(&paper(), Qt::LeftButton, Qt::NoModifier, header);
  EXPECT_EQ(canvas().tracks().tracks().size(), all);
}

TEST_F(TimelineViewTest, HitsAreFoundAgainWhenTheirRankIsUnfolded) {
  view_.find(QStringLiteral("kind=gemm"));
  const std::size_t all = canvas().scene().matches.count();
  ASSERT_GT(all, 0U);
  for (const QString& label : view_.ranks()) canvas().fold(label, true);
  EXPECT_EQ(canvas().scene().matches.count(), 0U);
  for (const QString& label : view_.ranks()) canvas().fold(label, false);
  EXPECT_EQ(canvas().scene().matches.count(), all);
}

TEST_F(TimelineViewTest, WhatIsRevealedLiesBelowThePinnedRows) {
  view_.resize(1000, 320);
  for (int i = 1; i < 5; ++i)
    canvas().pin(canvas().tracks().tracks()[canvas().tracks().tracks().size() - 2], true);
  const Track& last = canvas().tracks().tracks()[canvas().tracks().tracks().size() - 3];
  for (const Track& track : {canvas().tracks().tracks()[6], last}) {
    if (track.kind != TrackKind::Spans) continue;
    const SpanRef ref = canvas().tracks().ref(track, 0);
    canvas().reveal(ref);
    const double y = track.shown_y(canvas().scene().scroll);
    EXPECT_GE(y, canvas().tracks().pinned_height());
    EXPECT_LE(y + track.height, geometry().rows_height());
  }
}

TEST_F(TimelineViewTest, GoesToRanksAndOpsByName) {
  ASSERT_GT(view_.ranks().size(), 1);
  view_.resize(1000, 260);
  canvas().fold(view_.ranks().back(), true);
  view_.go_to_rank(view_.ranks().back());
  EXPECT_FALSE(canvas().tracks().is_folded(view_.ranks().back()));
  EXPECT_GT(canvas().scene().scroll, 0.0);
  const QString op = view_.ops().back();
  view_.go_to_op(op);
  ASSERT_TRUE(canvas().scene().selected.has_value());
  EXPECT_EQ(QString::fromStdString(canvas().tracks().span(*canvas().scene().selected).name), op);
}

TEST_F(TimelineViewTest, FilterThatMatchesNothingSaysWhatToDo) {
  view_.filter(QStringLiteral("nothing-is-called-so"));
  auto* empty = view_.findChild<EmptyState*>();
  EXPECT_TRUE(empty->is_empty());
  EXPECT_TRUE(empty->hint().contains(QStringLiteral("filter")));
  view_.filter(QString());
  EXPECT_FALSE(empty->is_empty());
}

TEST_F(TimelineViewTest, SaysWhatToDoWithoutATimeline) {
  TimelineView view;
  shown(view, {600, 300});
  EXPECT_TRUE(view.findChild<EmptyState*>()->is_empty());
  EXPECT_TRUE(view.table().rows.empty());
  for (const Qt::Key key : {Qt::Key_W, Qt::Key_D, Qt::Key_F, Qt::Key_Return, Qt::Key_Backspace,
                            Qt::Key_Right, Qt::Key_Down, Qt::Key_Escape})
    QTest::keyClick(&view.canvas(), key);
  view.find_next();
  turn_wheel(*view.canvas().viewport(), {300.0, 100.0}, 1, Qt::ControlModifier);
  EXPECT_FALSE(view.canvas().scene().selected.has_value());
}

TEST_F(TimelineViewTest, QShowsWhatTheSelectedOpIs) {
  auto& details = *view_.findChild<QLabel*>(QStringLiteral("op_details"));
  EXPECT_FALSE(details.isVisible());
  QTest::keyClick(&canvas(), Qt::Key_Q);
  ASSERT_TRUE(details.isVisible());
  EXPECT_TRUE(details.text().contains(QStringLiteral("Click on an op")));
  ASSERT_TRUE(QTest::qWaitFor([&] { return !canvas().critical_path().empty(); }));
  const std::vector<SpanRef> path = canvas().critical_path();
  const auto multiplies = [&](SpanRef ref) {
    return canvas().tracks().span(ref).kind == OpKind::Gemm;
  };
  const auto at = std::find_if(path.begin() + 1, path.end(), multiplies);
  ASSERT_NE(at, path.end());
  canvas().select_op(*at);
  const Span& before = canvas().tracks().span(*std::prev(at));
  EXPECT_TRUE(details.text().contains(QStringLiteral("waited for")));
  EXPECT_TRUE(details.text().contains(QString::fromStdString(before.name)));
  EXPECT_TRUE(details.text().contains(QStringLiteral("of the peak")));
  QTest::keyClick(&canvas(), Qt::Key_Q);
  EXPECT_FALSE(details.isVisible());
}

TEST_F(TimelineViewTest, ToolTipTellsOfTheOp) {
  const SpanRef ref{0, 200};
  const Span& span = canvas().tracks().span(ref);
  canvas().show_window(span.start.value() - 1e-3, span.end().value() + 1e-3);
  const QPoint at = place_of(ref).toPoint();
  QHelpEvent help(QEvent::ToolTip, at, paper().mapToGlobal(at));
  QApplication::sendEvent(&paper(), &help);
  EXPECT_TRUE(QToolTip::text().contains(QString::fromStdString(span.name)));
  QToolTip::hideText();
}

TEST_F(TimelineViewTest, MarksTheCriticalPathAfterTheFirstPaint) {
  EXPECT_TRUE(QTest::qWaitFor([&] { return !canvas().critical_path().empty(); }));
  EXPECT_FALSE(canvas().scene().critical_path.empty());
}

TEST_F(TimelineViewTest, PaintsInLightAndDarkAndTwoTimelines) {
  for (const QPalette& palette : {light_palette(), dark_palette()}) {
    view_.setPalette(palette);
    view_.set_timelines({small_step().timeline, measured(*small_step().timeline, 1.1)});
    QApplication::processEvents();
    view_.select_range(0.0, 0.01);
    canvas().select_op({0, 300});
    EXPECT_GT(colours_in(paper()), 20U);
    EXPECT_EQ(view_.statistics().columnCount(), 7);
  }
}

// Vectors, not a picture in a frame: what is painted stays text and rectangles.
TEST_F(TimelineViewTest, ExportsAsVectors) {
  QTemporaryDir folder;
  for (const char* name : {"t.svg", "t.pdf", "t.png"}) {
    const QString file = folder.filePath(QString::fromUtf8(name));
    export_picture(canvas(), file);
    EXPECT_GT(QFile(file).size(), 5000) << name;
  }
  QFile svg(folder.filePath(QStringLiteral("t.svg")));
  ASSERT_TRUE(svg.open(QIODevice::ReadOnly));
  const QByteArray text = svg.readAll();
  EXPECT_TRUE(text.contains("critical path"));
  EXPECT_TRUE(text.contains("stage 1"));
  EXPECT_FALSE(text.contains("<image"));
}

TEST_F(TimelineViewTest, TableHasTheSpansInView) {
  const std::size_t all = view_.table().rows.size();
  EXPECT_EQ(all, small_step().timeline->spans.size());
  canvas().show_window(0.0, 0.01);
  EXPECT_LT(view_.table().rows.size(), all);
}

TEST_F(TimelineViewTest, ScrollBarsFollowAndLead) {
  const double end = canvas().tracks().end();
  canvas().show_window(0.5 * end, 0.6 * end);
  QScrollBar* bar = canvas().horizontalScrollBar();
  EXPECT_GT(bar->value(), 0);
  bar->setValue(0);
  EXPECT_EQ(window().from, 0.0);
  EXPECT_NEAR(window().length(), 0.1 * end, 1e-9);
}

TEST(RangeStatisticsModel, IsAModel) {
  RangeStatisticsModel model;
  const QAbstractItemModelTester tester(&model,
                                        QAbstractItemModelTester::FailureReportingMode::Fatal);
  TimelineTracks tracks;
  tracks.set_timelines({small_step().timeline, measured(*small_step().timeline, 1.2)});
  model.set(range_statistics(tracks, 0.0, tracks.end()),
            {TimelineOrigin::Predicted, TimelineOrigin::Measured});
  EXPECT_EQ(model.columnCount(), 7);
  const int last = model.rowCount() - 1;
  EXPECT_EQ(model.index(last, RangeStatisticsModel::Kind).data().toString().toStdString(), "all");
  EXPECT_EQ(model.index(last, RangeStatisticsModel::Difference).data().toString().toStdString(),
            "+20.0 %");
  model.set({}, {TimelineOrigin::Predicted});
  EXPECT_EQ(model.rowCount(), 0);
}

}  // namespace
}  // namespace shardwright::gui
