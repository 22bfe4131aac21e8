#include <gtest/gtest.h>

#include <QLabel>
#include <QScrollBar>
#include <QSettings>
#include <QTemporaryDir>
#include <set>

#include "tests/gui/timeline/timeline_view_fixture.hpp"

namespace shardwright::gui {
namespace {

using gui::fixtures::choose;
using gui::fixtures::drag;
using gui::fixtures::move_mouse;
using gui::fixtures::small_step;
using TimelineRowsTest = gui::fixtures::TimelineViewTest;

TEST_F(TimelineRowsTest, AClickOnItsNameFoldsARank) {
  const std::size_t all = tracks().tracks().size();
  const QPoint name(40, static_cast<int>(geometry().plot.top()) + 10);
  QTest::mouseClick(&paper(), Qt::LeftButton, Qt::NoModifier, name);
  EXPECT_LT(tracks().tracks().size(), all);
  QTest::mouseClick(&paper(), Qt::LeftButton, Qt::NoModifier, name);
  EXPECT_EQ(tracks().tracks().size(), all);
  choose(view_, paper(), name, u"Fold all others"_s);
  std::size_t ranks = 0;
  for (const QString& label : view_.ranks()) ranks += tracks().is_folded(label) ? 0 : 1;
  EXPECT_EQ(ranks, 1U);
  choose(view_, paper(), name, u"Unfold all"_s);
  EXPECT_EQ(tracks().tracks().size(), all);
}

TEST_F(TimelineRowsTest, APinnedRowStaysInViewAndIsUnpinnedThere) {
  const Track track = tracks().tracks()[1];
  const QString name = u"%1 · %2"_s.arg(track.rank_label, track.label);
  choose(view_, paper(), QPointF(40, geometry().plot.top() + track.y + 5),
         u"Pin %1 to the top"_s.arg(name));
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
  choose(view_, paper(), top, u"Unpin %1"_s.arg(name));
  EXPECT_EQ(tracks().pinned_height(), 0.0);
}

TEST_F(TimelineRowsTest, ANameIsDraggedToAnotherPlace) {
  const Track first = tracks().tracks()[1], second = tracks().tracks()[2];
  const auto middle = [&](const Track& track) {
    return QPoint(60, static_cast<int>(geometry().plot.top() + track.y + 0.5 * track.height));
  };
  drag(paper(), middle(first), middle(second) + QPoint(0, 4), Qt::LeftButton);
  EXPECT_EQ(tracks().tracks()[1].key(), second.key());
  EXPECT_EQ(tracks().tracks()[2].key(), first.key());
  EXPECT_FALSE(canvas().scene().drop_line);
  EXPECT_FALSE(canvas().scene().range);
  // A rank takes all of its rows along and is not folded.
  const QStringList ranks = view_.ranks();
  ASSERT_GT(ranks.size(), 1);
  const Track header = tracks().tracks().front();
  drag(paper(), middle(header), QPoint(60, static_cast<int>(geometry().plot.bottom()) - 1),
       Qt::LeftButton);
  EXPECT_EQ(view_.ranks().indexOf(ranks.front()), 1);
  EXPECT_FALSE(tracks().is_folded(ranks.front()));
  choose(view_, paper(), middle(header), u"Restore the order of all rows"_s);
  EXPECT_EQ(view_.ranks(), ranks);
  EXPECT_EQ(tracks().tracks()[1].key(), first.key());
}

TEST_F(TimelineRowsTest, EscLeavesADragAsItWas) {
  const Track first = tracks().tracks()[1];
  const QPoint at(60, static_cast<int>(geometry().plot.top() + first.y) + 5);
  QTest::mousePress(&paper(), Qt::LeftButton, Qt::NoModifier, at);
  move_mouse(paper(), at + QPoint(0, 70), Qt::LeftButton);
  EXPECT_TRUE(canvas().scene().drop_line);
  press(Qt::Key_Escape);
  EXPECT_FALSE(canvas().scene().drop_line);
  QTest::mouseRelease(&paper(), Qt::LeftButton, Qt::NoModifier, at + QPoint(0, 70));
  EXPECT_EQ(tracks().tracks()[1].key(), first.key());
  EXPECT_FALSE(tracks().is_reordered());
}

TEST_F(TimelineRowsTest, KeysMoveTheRowOfTheChosenOpAndItsRank) {
  const Track row = tracks().tracks()[1];
  const QStringList ranks = view_.ranks();
  // Nothing is selected yet.
  QTest::keyClick(&canvas(), Qt::Key_Down, Qt::AltModifier);
  EXPECT_FALSE(tracks().is_reordered());
  canvas().select_op(tracks().ref(row, 0));
  QTest::keyClick(&canvas(), Qt::Key_Down, Qt::AltModifier);
  EXPECT_EQ(tracks().tracks()[2].key(), row.key());
  QTest::keyClick(&canvas(), Qt::Key_Up, Qt::AltModifier);
  EXPECT_EQ(tracks().tracks()[1].key(), row.key());
  QTest::keyClick(&canvas(), Qt::Key_Down, Qt::AltModifier | Qt::ShiftModifier);
  EXPECT_EQ(view_.ranks().indexOf(ranks.front()), 1);
  // The order is kept between sessions.
  const QTemporaryDir folder;
  QSettings settings(folder.filePath(u"s.ini"_s), QSettings::IniFormat);
  view_.save(settings);
  TimelineView other;
  other.restore(settings);
  other.set_timelines({small_step().timeline});
  EXPECT_EQ(other.ranks(), view_.ranks());
  view_.reset_order();
  EXPECT_EQ(view_.ranks(), ranks);
}

// A double click on a header fits all if it is in the plot.
TEST_F(TimelineRowsTest, ADoubleClickInThePlotFoldsNothing) {
  const std::size_t all = tracks().tracks().size();
  const QPoint header(600, static_cast<int>(geometry().plot.top()) + 10);
  QTest::mouseClick(&paper(), Qt::LeftButton, Qt::NoModifier, header);
  QTest::mouseDClick(&paper(), Qt::LeftButton, Qt::NoModifier, header);
  EXPECT_EQ(tracks().tracks().size(), all);
}

TEST_F(TimelineRowsTest, HitsAreFoundAgainWhenTheirRankIsUnfolded) {
  view_.find(u"kind=gemm"_s);
  const std::size_t all = canvas().scene().matches.count();
  ASSERT_GT(all, 0U);
  for (const QString& label : view_.ranks()) canvas().fold(label, true);
  EXPECT_EQ(canvas().scene().matches.count(), 0U);
  for (const QString& label : view_.ranks()) canvas().fold(label, false);
  EXPECT_EQ(canvas().scene().matches.count(), all);
}

// Find looks into folded ranks too, and unfolds the rank of the match that it goes to.
TEST_F(TimelineRowsTest, AnOpThatTheFilterLeavesOutUnfoldsNothing) {
  view_.find(u"kind=gemm"_s);
  const SpanRef gemm = tracks().find(SpanQuery::parse(u"kind=gemm"_s)).front();
  const QString label = tracks().rank_label_of(gemm);
  canvas().fold(label, true);
  view_.filter(u"nothing-is-called-so"_s);
  ASSERT_FALSE(tracks().is_shown(gemm));
  canvas().reveal(gemm);
  EXPECT_TRUE(tracks().is_folded(label));
}

// The matches of a rank whose rows were moved change their order as the rank is unfolded.
TEST_F(TimelineRowsTest, TheLabelOfAMatchNamesTheSelectedOne) {
  const QString query = u"e"_s;
  canvas().select_op(tracks().ref(tracks().tracks()[1], 0));
  QTest::keyClick(&canvas(), Qt::Key_Down, Qt::AltModifier);
  ASSERT_TRUE(tracks().is_reordered());
  canvas().fold(view_.ranks().front(), true);
  view_.find(query);
  const auto& label = *view_.findChild<QLabel*>(u"match_label"_s);
  for (int i = 0; i < 20; ++i) {
    view_.find_next();
    const auto matches = tracks().find(SpanQuery::parse(query));
    const auto number = static_cast<std::size_t>(label.text().section(u' ', 0, 0).toInt());
    ASSERT_GE(number, 1U) << label.text().toStdString();
    EXPECT_EQ(matches.at(number - 1), selected()) << label.text().toStdString();
  }
}

TEST_F(TimelineRowsTest, AMatchInAFoldedRankUnfoldsIt) {
  const QStringList ranks = view_.ranks();
  for (const QString& label : ranks) canvas().fold(label, true);
  view_.find(u"kind=gemm"_s);
  std::set<QString> visited;
  std::set<std::uint32_t> found;
  for (std::size_t i = 0; i < tracks().find(SpanQuery::parse(u"kind=gemm"_s)).size(); ++i) {
    view_.find_next();
    ASSERT_TRUE(canvas().scene().selected);
    const SpanRef ref = *canvas().scene().selected;
    visited.insert(tracks().rank_label_of(ref));
    EXPECT_TRUE(found.insert(ref.index).second) << "no match is visited twice";
    EXPECT_TRUE(tracks().track_of(ref)) << "the match is seen";
  }
  EXPECT_EQ(visited.size(), static_cast<std::size_t>(ranks.size()));
}

// The whole step lies above the axis; a click there moves the part in view.
TEST_F(TimelineRowsTest, AClickOnTheMinimapGoesThere) {
  canvas().show_window(0.0, 0.1 * tracks().end());
  const QRectF map = geometry().minimap;
  QTest::mouseClick(canvas().viewport(), Qt::LeftButton, {}, map.center().toPoint());
  const AxisWindow& window = canvas().scene().window;
  EXPECT_NEAR(window.middle(), 0.5 * tracks().end(), 0.01 * tracks().end());
  EXPECT_NEAR(window.length(), 0.1 * tracks().end(), 1e-6);
  EXPECT_FALSE(canvas().scene().range);
}

TEST_F(TimelineRowsTest, WhatIsRevealedLiesBelowThePinnedRows) {
  view_.resize(1000, 320);
  for (int i = 1; i < 5; ++i) canvas().pin(tracks().tracks()[tracks().tracks().size() - 2], true);
  const Track& last = tracks().tracks()[tracks().tracks().size() - 3];
  for (const Track& track : {tracks().tracks()[6], last}) {
    if (track.kind != TrackKind::Spans) continue;
    const SpanRef ref = tracks().ref(track, 0);
    canvas().reveal(ref);
    const double y = track.shown_y(canvas().scene().rows.from);
    EXPECT_GE(y, tracks().pinned_height());
    EXPECT_LE(y + track.height, geometry().plot.height());
  }
}

}  // namespace
}  // namespace shardwright::gui
