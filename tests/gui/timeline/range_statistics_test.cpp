#include "gui/timeline/range_statistics.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/gui/timeline/timeline_view_fixture.hpp"

namespace shardwright::gui {
namespace {

using gui::fixtures::measured;
using gui::fixtures::small_step;
using gui::fixtures::TimelineViewTest;
using gui::fixtures::tracks_of;

TEST(RangeStatistics, OfTheWholeCountEverySpanOnce) {
  const TimelineTracks tracks = tracks_of({small_step().timeline});
  const RangeStatistics statistics = range_statistics(tracks, 0.0, tracks.end());
  double expected = 0.0, found = 0.0;
  for (const Span& span : small_step().timeline->spans) expected += span.duration.value();
  for (const KindStatistics& kind : statistics.kinds) found += kind.seconds[0];
  EXPECT_NEAR(found, expected, 1e-9 * expected);
  EXPECT_EQ(statistics.count(0), small_step().timeline->spans.size());
  EXPECT_GT(statistics.compute_busy[0], 0.3);
  EXPECT_LE(statistics.compute_busy[0], 1.0);
  EXPECT_LT(statistics.compute_busy[1], 0.0);
}

TEST(RangeStatistics, OfNeighbouringRangesAddUp) {
  const TimelineTracks tracks = tracks_of({small_step().timeline});
  EXPECT_TRUE(rc::check([&] {
    const double end = tracks.end();
    const double a = end * *rc::gen::inRange(0, 500) / 1000.0;
    const double b = a + end * *rc::gen::inRange(1, 250) / 1000.0;
    const double c = b + end * *rc::gen::inRange(1, 250) / 1000.0;
    const auto total = [&](double from, double to) {
      double sum = 0.0;
      for (const KindStatistics& kind : range_statistics(tracks, from, to).kinds)
        sum += kind.seconds[0];
      return sum;
    };
    const double whole = total(a, c);
    RC_ASSERT(std::abs(total(a, b) + total(b, c) - whole) < 1e-9 * (1.0 + whole));
  }));
}

// Each row is counted once, and its time is that of its kinds.
TEST(RangeStatistics, OfRowsAddUpToThoseOfKinds) {
  const TimelineTracks tracks =
      tracks_of({small_step().timeline, measured(*small_step().timeline, 1.2)});
  const RangeStatistics statistics =
      range_statistics(tracks, 0.2 * tracks.end(), 0.7 * tracks.end());
  double kinds = 0.0, rows = 0.0;
  for (const KindStatistics& kind : statistics.kinds) kinds += kind.seconds[0] + kind.seconds[1];
  std::set<QString> titles;
  for (const RowStatistics& row : statistics.rows) {
    rows += row.seconds;
    titles.insert(row.title);
    EXPECT_LE(row.seconds, statistics.length() * (1.0 + 1e-9)) << qPrintable(row.title);
  }
  EXPECT_NEAR(rows, kinds, 1e-9 * kinds);
  EXPECT_EQ(titles.size(), statistics.rows.size());
  EXPECT_TRUE(titles.contains(u"stage 0 · compute, predicted"_s));
  EXPECT_EQ(row_table(statistics).rows.size(), statistics.rows.size());
}

TEST(StatisticsTable, ComparesTwoTimelines) {
  const TimelineTracks tracks =
      tracks_of({small_step().timeline, measured(*small_step().timeline, 1.2)});
  const TextTable table = statistics_table(range_statistics(tracks, 0.0, tracks.end()),
                                           {u"fast.json"_s, u"slow.json"_s});
  EXPECT_EQ(
      table.header.join(u';'),
      u"kind;spans, fast.json;time, fast.json;share;spans, slow.json;time, slow.json;difference"_s);
  EXPECT_EQ(table.rows.back().front(), u"all"_s);
  EXPECT_EQ(table.rows.back().back(), u"+20.0 %"_s);
  for (const QStringList& row : table.rows) EXPECT_EQ(row.size(), table.header.size());
  EXPECT_TRUE(statistics_table({}, {u"predicted"_s}).rows.empty());
}

// A long name leaves room for the difference; the tool tip has all of it.
TEST_F(TimelineViewTest, HeadingsOfTheStatisticsAreCut) {
  view_.set_timelines({small_step().timeline, small_step().timeline}, nullptr, {}, {},
                      {u"fast.json"_s, u"slow/llama3-70b-tp8-pp4.json"_s});
  canvas().select_range(0.0, canvas().tracks().end());
  EXPECT_EQ(statistics().horizontalHeaderItem(2)->text(), u"time, fast.json"_s);
  EXPECT_EQ(statistics().horizontalHeaderItem(5)->text(), u"time, slow/lla…0b-tp8-pp4.json"_s);
  EXPECT_EQ(statistics().horizontalHeaderItem(5)->toolTip(),
            u"time, slow/llama3-70b-tp8-pp4.json"_s);
}

}  // namespace
}  // namespace shardwright::gui
