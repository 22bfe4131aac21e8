#include "gui/timeline/timeline_view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QToolButton>

#include "gui/painting/legend_lines.hpp"
#include "gui/views/empty_state.hpp"
#include "tests/gui/timeline/timeline_view_fixture.hpp"

namespace shardwright::gui {
namespace {

using gui::fixtures::choose;
using gui::fixtures::colours_in;
using gui::fixtures::drag;
using gui::fixtures::measured;
using gui::fixtures::move_mouse;
using gui::fixtures::shown;
using gui::fixtures::small_step;
using gui::fixtures::TimelineViewTest;
using gui::fixtures::tool_tip_at;
using gui::fixtures::tracks_of;
using gui::fixtures::turn_wheel;

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
  EXPECT_GT(canvas().scene().rows.from, 0.0);
  EXPECT_EQ(window().length(), length);
  turn_wheel(paper(), {600.0, 10.0}, 1);
  EXPECT_LT(window().length(), length);
}

// Of a narrow view it takes several lines rather than leave entries out.
TEST_F(TimelineViewTest, TheLegendShowsAllEntriesAtAnyWidth) {
  ASSERT_TRUE(QTest::qWaitFor([&] { return !canvas().critical_path().empty(); }));
  const std::vector<LegendEntry>& entries = canvas().scene().legend;
  ASSERT_GT(entries.size(), 4U);
  for (const int width : {260, 500, 1000, 2000}) {
    shown(view_, {width, 600});
    const QRectF legend = geometry().legend;
    EXPECT_EQ(legend.bottom(), paper().height());
    EXPECT_EQ(geometry().plot.bottom(), legend.top());
    const std::vector<QPointF> places = places_in_legend(widths_of(entries), legend.width());
    ASSERT_EQ(places.size(), entries.size());
    const QFontMetricsF metrics(legend_font());
    for (std::size_t i = 0; i < places.size(); ++i) {
      const double end =
          places[i].x() + kLegendMarkWidth + metrics.horizontalAdvance(entries[i].text);
      EXPECT_LE(end, legend.width()) << qPrintable(entries[i].text);
      EXPECT_LE(places[i].y() + 0.5 * metrics.height(), legend.height());
      const bool follows = i == 0 || places[i].y() > places[i - 1].y() ||
                           places[i].x() >= places[i - 1].x() + entries[i - 1].width;
      EXPECT_TRUE(follows) << qPrintable(entries[i].text);
    }
    // What the shades mean stands last.
    EXPECT_EQ(entries.back().mark, LegendMark::None);
    const std::size_t critical = entries.size() - 2;
    ASSERT_EQ(entries[critical].mark, LegendMark::CriticalPath);
    const QPointF mark = legend.topLeft() + places[critical] + QPointF(5.0, 3.0);
    EXPECT_EQ(paper().grab().toImage().pixelColor(mark.toPoint()),
              colours_for(paper().palette()).text);
  }
}

TEST_F(TimelineViewTest, DragSelectsARangeWithItsStatistics) {
  QSignalSpy selected(&canvas(), &TimelineCanvas::range_selected);
  const double from = time_at(300.0), to = time_at(700.0);
  drag(paper(), {300, 200}, {700, 210}, Qt::LeftButton);
  ASSERT_TRUE(canvas().scene().range.has_value());
  EXPECT_NEAR(canvas().scene().range->from, from, 1e-9);
  EXPECT_NEAR(canvas().scene().range->to, to, 1e-9);
  ASSERT_FALSE(selected.isEmpty());
  EXPECT_EQ(selected.back().at(1).toDouble(), canvas().scene().range->to);
  EXPECT_GT(statistics().rowCount(), 3);
  // The tables stand beside the rows and cover none of them.
  QTableWidget& rows = *view_.findChild<QTableWidget*>(u"row_statistics"_s);
  EXPECT_GT(rows.rowCount(), 3);
  for (const QTableWidget* table : {&statistics(), &rows}) {
    ASSERT_TRUE(table->isVisible());
    EXPECT_GE(table->mapTo(&view_, QPoint()).x(),
              paper().mapTo(&view_, QPoint(paper().width(), 0)).x());
  }
  QSignalSpy cleared(&canvas(), &TimelineCanvas::range_cleared);
  press(Qt::Key_Escape);
  EXPECT_EQ(cleared.size(), 1);
  EXPECT_EQ(statistics().rowCount(), 0);
}

// The rows keep their width while a range is dragged, so that it ends where the mouse is.
TEST_F(TimelineViewTest, TablesWaitForTheEndOfADrag) {
  const int width = paper().width();
  QTest::mousePress(&paper(), Qt::LeftButton, {}, {300, 200});
  for (const int x : {400, 500, 600}) {
    move_mouse(paper(), {double(x), 200.0}, Qt::LeftButton);
    QCoreApplication::processEvents();
    EXPECT_EQ(paper().width(), width);
  }
  const double to = time_at(600.0);
  QTest::mouseRelease(&paper(), Qt::LeftButton, {}, {600, 200});
  QCoreApplication::processEvents();
  EXPECT_NEAR(canvas().scene().range->to, to, 1e-9);
  EXPECT_LT(paper().width(), width);
  press(Qt::Key_Escape);
  QCoreApplication::processEvents();
  EXPECT_EQ(paper().width(), width);
}

TEST_F(TimelineViewTest, EnterZoomsToTheRangeAndBackspaceGoesBack) {
  const AxisWindow before = window();
  const double end = tracks().end();
  canvas().select_range(0.25 * end, 0.5 * end);
  press(Qt::Key_Return);
  EXPECT_NEAR(window().from, 0.25 * end, 1e-9);
  EXPECT_NEAR(window().to, 0.5 * end, 1e-9);
  press(Qt::Key_Backspace);
  EXPECT_EQ(window(), before);
}

TEST_F(TimelineViewTest, ClickSelectsTheOpAndFCentresThenFitsIt) {
  const SpanRef ref{0, 200};
  const Span& span = tracks().span(ref);
  canvas().show_window(span.start.value() - 2e-3, span.end().value() + 1e-3);
  QSignalSpy selected(&canvas(), &TimelineCanvas::op_selected);
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
  const SpanRef first = selected();
  press(Qt::Key_Right);
  EXPECT_NE(selected(), first);
  EXPECT_GE(tracks().span(selected()).start, tracks().span(first).start);
  press(Qt::Key_Left);
  EXPECT_EQ(selected(), first);
  press(Qt::Key_Left);
  EXPECT_EQ(selected(), first);
  press(Qt::Key_Down);
  EXPECT_NE(tracks().span(selected()).stream, tracks().span(first).stream);
  press(Qt::Key_Up);
  EXPECT_EQ(tracks().span(selected()).stream, tracks().span(first).stream);
}

TEST_F(TimelineViewTest, FindsOpsAndGoesFromHitToHit) {
  view_.find(u"qkv mb=3 phase=forward"_s);
  EXPECT_GT(canvas().scene().matches.count(), 0U);
  view_.find_next();
  ASSERT_TRUE(canvas().scene().selected.has_value());
  const SpanRef first = selected();
  EXPECT_EQ(tracks().span(first).microbatch, 3);
  press(Qt::Key_Period);
  EXPECT_NE(selected(), first);
  press(Qt::Key_Comma);
  EXPECT_EQ(selected(), first);
  view_.find_previous();
  EXPECT_NE(selected(), first);
  view_.find(u"nothing-is-called-so"_s);
  view_.find_next();
  EXPECT_EQ(canvas().scene().matches.count(), 0U);
}

// A line of which a part cannot be read finds nothing and filters as before.
TEST_F(TimelineViewTest, TakesOnlyLinesThatItCanRead) {
  view_.filter(u"kind=gemm"_s);
  const std::size_t filtered = tracks().shown_spans();
  ASSERT_LT(filtered, tracks().all_spans());
  view_.filter(u"kind=gemm, phase=forward, layer=x"_s);
  EXPECT_EQ(tracks().shown_spans(), filtered);
  view_.find(u"qkv"_s);
  ASSERT_GT(canvas().scene().matches.count(), 0U);
  view_.find(u"qkv layer=x"_s);
  EXPECT_EQ(canvas().scene().matches.count(), 0U);
  EXPECT_EQ(view_.findChild<QLabel*>(u"match_label"_s)->text(), QString());
}

TEST_F(TimelineViewTest, ASpansMenuFiltersAndChipsTakeItBack) {
  const SpanRef span = tracks().ref(tracks().tracks()[1], 0);
  const Span& op = tracks().span(span);
  const QString kind = to_qstring(name_of(op.kind));
  const std::size_t all = tracks().shown_spans();
  canvas().show_window(op.start.value(), op.end().value());
  choose(view_, paper(), place_of(span), u"kind="_s + kind, u"Show only"_s);
  const std::size_t only = tracks().shown_spans();
  EXPECT_LT(only, all);
  auto* chip = view_.findChild<QToolButton*>(u"chip_0"_s);
  ASSERT_NE(chip, nullptr);
  EXPECT_TRUE(chip->isVisible());
  QTest::mouseClick(chip, Qt::LeftButton);
  EXPECT_EQ(tracks().shown_spans(), all);
  choose(view_, paper(), place_of(span), u"kind="_s + kind, u"Leave out"_s);
  EXPECT_EQ(tracks().shown_spans(), all - only);
}

// All buttons can be reached in a narrow dock.
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

TEST_F(TimelineViewTest, GoesToRanksAndOpsByName) {
  ASSERT_GT(view_.ranks().size(), 1);
  view_.resize(1000, 260);
  canvas().fold(view_.ranks().back(), true);
  view_.go_to_rank(view_.ranks().back());
  EXPECT_FALSE(tracks().is_folded(view_.ranks().back()));
  EXPECT_GT(canvas().scene().rows.from, 0.0);
  const QString op = view_.ops().back();
  view_.go_to_op(op);
  ASSERT_TRUE(canvas().scene().selected.has_value());
  EXPECT_EQ(to_qstring(tracks().span(selected()).name), op);
}

TEST_F(TimelineViewTest, FilterThatMatchesNothingSaysWhatToDo) {
  view_.filter(u"nothing-is-called-so"_s);
  auto* empty = view_.findChild<EmptyState*>();
  EXPECT_TRUE(empty->is_empty());
  EXPECT_TRUE(empty->hint().contains(u"filter"_s));
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
  auto& details = *view_.findChild<QLabel*>(u"op_details"_s);
  EXPECT_FALSE(details.isVisible());
  QTest::keyClick(&canvas(), Qt::Key_Q);
  ASSERT_TRUE(details.isVisible());
  EXPECT_TRUE(details.text().contains(u"Click on an op"_s));
  ASSERT_TRUE(QTest::qWaitFor([&] { return !canvas().critical_path().empty(); }));
  const std::vector<SpanRef> path = canvas().critical_path();
  const auto multiplies = [&](SpanRef ref) {
    return canvas().tracks().span(ref).kind == OpKind::Gemm;
  };
  const auto at = std::find_if(path.begin() + 1, path.end(), multiplies);
  ASSERT_NE(at, path.end());
  canvas().select_op(*at);
  const Span& before = tracks().span(*std::prev(at));
  EXPECT_TRUE(details.text().contains(u"waited for"_s));
  EXPECT_TRUE(details.text().contains(to_qstring(before.name)));
  EXPECT_TRUE(details.text().contains(u"of the peak"_s));
  QTest::keyClick(&canvas(), Qt::Key_Q);
  EXPECT_FALSE(details.isVisible());
}

TEST_F(TimelineViewTest, ToolTipDescribesTheOp) {
  const SpanRef ref{0, 200};
  const Span& span = tracks().span(ref);
  canvas().show_window(span.start.value() - 1e-3, span.end().value() + 1e-3);
  const QPoint at = place_of(ref).toPoint();
  EXPECT_THAT(tool_tip_at(paper(), at), Says(to_qstring(span.name)));
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
    canvas().select_range(0.0, 0.01);
    canvas().select_op({0, 300});
    EXPECT_GT(colours_in(paper()), 20U);
    EXPECT_EQ(statistics().columnCount(), 7);
  }
}

// Text and rectangles stay vectors; they do not become an image.
TEST_F(TimelineViewTest, ExportsAsVectors) {
  ASSERT_TRUE(QTest::qWaitFor([&] { return !canvas().critical_path().empty(); }));
  const QTemporaryDir folder;
  for (const char* name : {"t.pdf", "t.png"}) {
    const QString file = folder.filePath(to_qstring(name));
    export_picture(canvas(), file);
    EXPECT_GT(QFile(file).size(), 5000) << name;
  }
  const QByteArray text = fixtures::svg_of(canvas());
  EXPECT_GT(text.size(), 5000);
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

TEST(SpanText, TableHasTheSpansOfTheWindow) {
  const TimelineTracks tracks = tracks_of({small_step().timeline});
  EXPECT_EQ(span_table(shown_spans(tracks, 0.0, tracks.end())).rows.size(),
            small_step().timeline->spans.size());
  const TextTable none = span_table(shown_spans(tracks, tracks.end() + 1.0, tracks.end() + 2.0));
  EXPECT_TRUE(none.rows.empty());
  EXPECT_EQ(none.header.size(), 14);
}

TEST(SpanText, TipComparesPredictionAndMeasurement) {
  const TimelineTracks tracks =
      tracks_of({small_step().timeline, measured(*small_step().timeline, 1.25)});
  EXPECT_THAT(span_tool_tip(tracks, {0, 100}).toStdString(), ::testing::HasSubstr("+25.0 %"));
  EXPECT_THAT(span_tool_tip(tracks, {1, 100}).toStdString(), ::testing::HasSubstr("+25.0 %"));
}

TEST_F(TimelineViewTest, WhatAFilterLeavesIsInView) {
  shown(view_, {1000, 260});
  canvas().verticalScrollBar()->setValue(canvas().verticalScrollBar()->maximum());
  ASSERT_GT(canvas().verticalScrollBar()->value(), 0);
  QTest::keyClicks(view_.findChild<QLineEdit*>(), u"phase=forward"_s);
  EXPECT_EQ(canvas().scene().rows.from, 0.0);
}

// A view that is low for its letters shows rows rather than their legend.
TEST_F(TimelineViewTest, TheLegendGivesWayToTheRows) {
  shown(view_, {1000, 600});
  EXPECT_FALSE(geometry().legend.isEmpty());
  shown(view_, {500, 190});
  EXPECT_TRUE(geometry().legend.isEmpty());
  EXPECT_GT(geometry().plot.height(), 66.0);
}

}  // namespace
}  // namespace shardwright::gui
