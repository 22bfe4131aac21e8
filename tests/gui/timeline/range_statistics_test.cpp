#include "gui/timeline/range_statistics.hpp"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>

#include "gui/models/text.hpp"
#include "tests/gui/example_step.hpp"

namespace shardwright::gui {
namespace {

using gui::fixtures::measured;
using gui::fixtures::small_step;

TEST(RangeStatisticsModel, IsAModel) {
  RangeStatisticsModel model;
  const QAbstractItemModelTester tester(&model,
                                        QAbstractItemModelTester::FailureReportingMode::Fatal);
  TimelineTracks tracks;
  tracks.set_timelines({small_step().timeline, measured(*small_step().timeline, 1.2)});
  model.set(range_statistics(tracks, 0.0, tracks.end()),
            {u"fast.json"_s, u"slow/llama3-70b-tp8-pp4.json"_s});
  EXPECT_EQ(model.columnCount(), 7);
  const int last = model.rowCount() - 1;
  EXPECT_EQ(model.index(last, RangeStatisticsModel::Kind).data().toString().toStdString(), "all");
  EXPECT_EQ(model.index(last, RangeStatisticsModel::Difference).data().toString().toStdString(),
            "+20.0 %");
  const auto heading = [&](int column) {
    return model.headerData(column, Qt::Horizontal).toString().toStdString();
  };
  EXPECT_EQ(heading(RangeStatisticsModel::Time), "time, fast.json");
  // A long name is cut to leave room for the difference; its tool tip has all of it.
  EXPECT_EQ(heading(RangeStatisticsModel::OtherTime), "time, slow/llama3…tp8-pp4.json");
  EXPECT_EQ(model.headerData(RangeStatisticsModel::OtherTime, Qt::Horizontal, Qt::ToolTipRole)
                .toString()
                .toStdString(),
            "time, slow/llama3-70b-tp8-pp4.json");
  model.set({}, {u"predicted"_s});
  EXPECT_EQ(model.rowCount(), 0);
}

}  // namespace
}  // namespace shardwright::gui
