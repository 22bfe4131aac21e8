#include "gui/timeline/range_statistics.hpp"

#include <gtest/gtest.h>

#include "tests/gui/timeline/timeline_view_fixture.hpp"

namespace shardwright::gui {
namespace {

using gui::fixtures::measured;
using gui::fixtures::small_step;
using gui::fixtures::TimelineViewTest;

TEST(StatisticsTable, ComparesTwoTimelines) {
  TimelineTracks tracks;
  tracks.set_timelines({small_step().timeline, measured(*small_step().timeline, 1.2)});
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
