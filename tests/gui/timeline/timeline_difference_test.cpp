#include "gui/timeline/timeline_difference.hpp"

#include <gtest/gtest.h>

#include <QToolButton>

#include "tests/gui/small_scenario.hpp"
#include "tests/gui/timeline/timeline_view_fixture.hpp"

namespace shardwright::gui {
namespace {

using gui::fixtures::measured;
using gui::fixtures::small_step;
using gui::fixtures::TimelineViewTest;
using gui::fixtures::tracks_of;

TEST(TimelineDifference, OfATimelineAndItselfIsNone) {
  const Timeline& timeline = *small_step().timeline;
  const TimelineDifference difference(timeline, timeline);
  for (std::size_t side = 0; side < 2; ++side) {
    EXPECT_EQ(difference.unmatched(side), 0U);
    for (std::uint32_t i = 0; i < timeline.spans.size(); ++i) {
      EXPECT_EQ(difference.counterpart(side, i), i);
      EXPECT_EQ(difference.role(side, i), Role::Unchanged);
    }
  }
  EXPECT_TRUE(difference_table(difference, {u"a"_s, u"b"_s}, 20).rows.empty());
}

// The tracks look for the counterpart of one op at a time, by another way.
TEST(TimelineDifference, MatchesTheOpsThatTheTracksMatch) {
  const auto slower = measured(*small_step().timeline, 1.3);
  const TimelineTracks tracks = tracks_of({small_step().timeline, slower});
  const TimelineDifference difference(*small_step().timeline, *slower);
  for (std::uint32_t i = 0; i < small_step().timeline->spans.size(); i += 7) {
    const auto other = tracks.counterpart({0, i});
    EXPECT_EQ(difference.counterpart(0, i), other ? std::optional(other->index) : std::nullopt);
    EXPECT_EQ(difference.role(0, i), Role::MuchLonger);
  }
}

// Removed ops are those that only the first timeline has, slower ones head the table, and the sums
// of both timelines are those of their ops.
TEST(TimelineDifference, ListsTheLargestFirst) {
  Timeline changed = *small_step().timeline;
  std::size_t removed = 0;
  Seconds added;
  std::erase_if(changed.spans, [&](const Span& span) {
    const bool goes = span.microbatch == 3 && span.phase == Phase::Forward && removed < 5;
    removed += goes ? 1 : 0;
    return goes;
  });
  changed.flows.clear();
  for (Span& span : changed.spans) {
    if (span.name != "attention.qkv" || span.phase != Phase::Forward) continue;
    added += span.duration;
    span.duration *= 2.0;
  }
  const TimelineDifference difference(*small_step().timeline, changed);
  EXPECT_EQ(difference.unmatched(0), removed);
  EXPECT_EQ(difference.unmatched(1), 0U);
  const OpDifference& top = difference.ops().front();
  EXPECT_EQ(top.name, "attention.qkv");
  EXPECT_EQ(top.phase, Phase::Forward);
  EXPECT_NEAR((top.second - top.first).value(), added.value(), 1e-9);
  double in_second = 0.0, all = 0.0;
  for (const OpDifference& op : difference.ops()) in_second += op.second.value();
  for (const Span& span : changed.spans) all += span.duration.value();
  EXPECT_NEAR(in_second, all, 1e-9 * all);
}

TEST(TimelineDifference, HasARoleForEachSizeOfChange) {
  const auto role = [](double second) { return role_of_change(Seconds(1.0), Seconds(second)); };
  EXPECT_EQ(role(0.7), Role::MuchShorter);
  EXPECT_EQ(role(0.9), Role::Shorter);
  EXPECT_EQ(role(1.04), Role::Unchanged);
  EXPECT_EQ(role(1.1), Role::Longer);
  EXPECT_EQ(role(1.5), Role::MuchLonger);
  EXPECT_EQ(role_of_change(Seconds(0.0), Seconds(0.0)), Role::Unchanged);
}

TEST_F(TimelineViewTest, DifferencesAreColouredAndListed) {
  auto& toggle = *view_.findChild<QToolButton*>(u"timeline_differences"_s);
  EXPECT_FALSE(toggle.isVisible());
  view_.set_timelines({small_step().timeline, measured(*small_step().timeline, 1.1)});
  QCoreApplication::processEvents();
  ASSERT_TRUE(toggle.isVisible());
  QTest::mouseClick(&toggle, Qt::LeftButton);
  QTableWidget& table = *view_.findChild<QTableWidget*>(u"timeline_difference_table"_s);
  ASSERT_TRUE(wait_for([&] { return table.rowCount() > 0; }));
  EXPECT_TRUE(table.isVisible());
  std::set<QString> legend;
  for (const LegendEntry& entry : canvas().scene().legend) legend.insert(entry.text);
  EXPECT_TRUE(legend.contains(u"5 to 20 % longer"_s));
  EXPECT_FALSE(legend.contains(u"forward"_s));
  // A click on a line goes to its op, in the phase that the line is of.
  for (int row = 0; row < table.rowCount(); ++row) {
    table.scrollToItem(table.item(row, 0));
    const QRect line = table.visualItemRect(table.item(row, 0));
    QTest::mouseClick(table.viewport(), Qt::LeftButton, {}, line.center());
    const Span& span = tracks().span(selected());
    EXPECT_EQ(to_qstring(span.name), table.item(row, 0)->text());
    EXPECT_EQ(to_qstring(name_of(span.phase)).replace(u'_', u' '), table.item(row, 5)->text());
  }
  QTest::mouseClick(&toggle, Qt::LeftButton);
  EXPECT_FALSE(table.isVisible());
  EXPECT_EQ(canvas().scene().legend.front().text, u"forward"_s);
}

}  // namespace
}  // namespace shardwright::gui
