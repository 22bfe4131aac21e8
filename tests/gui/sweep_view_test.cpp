#include "gui/views/sweep_view.hpp"

#include <QComboBox>
#include <QLabel>

#include "gui/views/chart.hpp"
#include "gui/views/empty_state.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

using testing::Not;

class SweepViewTest : public WindowTest {
 protected:
  void sweep(planner::SweepAxis axis, PlanSet set) {
    find<QComboBox>("sweep_axis").setCurrentIndex(static_cast<int>(axis));
    window_.raise_view(u"sweeps"_s);
    window_.selection().show(std::make_shared<const PlanSet>(std::move(set)));
    ASSERT_TRUE(is_idle());
  }
  TextTable data() { return window_.findChild<SweepView*>()->table(); }
  QString reason() { return find<QLabel>("knee_reason").text(); }
  QString hint() {
    const auto* empty = qobject_cast<EmptyState*>(find<Chart>("sweep_chart").parentWidget());
    return empty->is_empty() ? empty->hint() : QString();
  }
};

TEST_F(SweepViewTest, AlongGpusTheBatchThatWasChosenIsNamed) {
  PlanSet open = *small_set();
  open.request.global_batch = 0;
  open.request.max_global_batch = 64;
  sweep(planner::SweepAxis::Gpus, open);
  const TextTable table = data();
  const qsizetype column = table.header.indexOf(u"Batch (sequences)"_s);
  ASSERT_GE(column, 0);
  ASSERT_FALSE(table.rows.empty());
  const QString batch = table.rows.back()[column];
  EXPECT_GT(batch.toInt(), 0);
  const QString reason = find<QLabel>("knee_reason").text();
  EXPECT_THAT(reason, Says(u"All train %1 sequences"_s.arg(batch)));

  sweep(planner::SweepAxis::Gpus, *small_set());
  EXPECT_FALSE(find<QLabel>("knee_reason").text().contains(u"All train"_s));
}

TEST_F(SweepViewTest, WithoutALinkItSaysThatThereIsNothingToSweep) {
  PlanSet alone = *small_set();
  alone.request.cluster.node.nic.bandwidth = BytesPerSecond(0.0);
  sweep(planner::SweepAxis::ScaleOutBandwidth, alone);
  const auto* empty = qobject_cast<EmptyState*>(find<Chart>("sweep_chart").parentWidget());
  ASSERT_NE(empty, nullptr);
  EXPECT_TRUE(empty->is_empty());
  EXPECT_THAT(empty->hint(), Says("nothing to sweep"));
  EXPECT_TRUE(find<QLabel>("knee_reason").text().isEmpty());
  EXPECT_TRUE(data().rows.empty());

  find<QComboBox>("sweep_axis")
      .setCurrentIndex(static_cast<int>(planner::SweepAxis::MemoryBandwidth));
  ASSERT_TRUE(is_idle());
  EXPECT_FALSE(empty->is_empty());
}

TEST_F(SweepViewTest, NothingOfTheFormerSweepIsLeftUnderANewChoice) {
  sweep(planner::SweepAxis::GlobalBatch, *small_set());
  ASSERT_FALSE(data().rows.empty());
  ASSERT_TRUE(reason().contains(u"Knee"_s));
  window_.selection().choose(1);
  EXPECT_TRUE(data().rows.empty());
  EXPECT_EQ(find<Chart>("sweep_chart").graphCount(), 0);
  find<QToolButton>("stop_sweep").click();
  EXPECT_THAT(reason(), Not(Says("Knee")));
  EXPECT_THAT(hint(), Says("Stopped before there was a point"));
}

TEST_F(SweepViewTest, OneThatWasStoppedBeforeAPointIsSweptForTheNextPlan) {
  sweep(planner::SweepAxis::GlobalBatch, *small_set());
  auto& view = *window_.findChild<SweepView*>();
  // The chosen plan is no part of a sweep along GPUs.
  find<QComboBox>("sweep_axis").setCurrentIndex(static_cast<int>(planner::SweepAxis::Gpus));
  find<QToolButton>("stop_sweep").click();
  ASSERT_TRUE(data().rows.empty());
  window_.selection().show(small_set());  // The search goes on.
  EXPECT_FALSE(view.is_busy());
  window_.selection().choose(1);
  ASSERT_TRUE(is_idle());
  EXPECT_FALSE(data().rows.empty());
  EXPECT_EQ(hint(), QString());
}

}  // namespace
}  // namespace shardwright::gui
