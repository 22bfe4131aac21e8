#include "gui/timeline/range_statistics.hpp"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>

#include "tests/gui/example_step.hpp"

namespace shardwright::gui {
namespace {

using gui::testing::measured;
using gui::testing::small_step;

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
