// The schedules against the figures of the papers that introduced them.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "core/schedule/pipeline_schedule.hpp"
#include "core/schedule/schedule_timing.hpp"
#include "tests/core/schedule/published_figures.hpp"
#include "tests/core/schedule/schedule_cases.hpp"

namespace shardwright {
namespace {

// Integers, so that sums of seconds are exact.
const std::vector<ChunkTimes> kTimes = {chunk_times(1, 1, 1), chunk_times(4, 5, 3),
                                        chunk_times(5, 4, 3), chunk_times(3, 4, 4),
                                        chunk_times(1, 3, 1), chunk_times(2, 1, 5)};

// True where the published formula is exact, as documented at published_bubble.
bool is_exact(const ScheduleCase& c, const ChunkTimes& t) {
  const bool weight_is_shortest =
      t.backward_weight <= t.forward && t.backward_weight <= t.backward_input;
  const bool input_gradient_is_longest =
      t.forward <= t.backward_input && t.backward_weight <= t.backward_input;
  const bool all_equal =
      weight_is_shortest && input_gradient_is_longest && t.backward_weight == t.backward_input;
  switch (c.kind) {
    case ScheduleKind::GPipe:
    case ScheduleKind::OneFOneB:
    case ScheduleKind::Interleaved:
      return true;
    case ScheduleKind::ZbH1:
      return weight_is_shortest && c.shape.microbatches >= c.shape.stages;
    case ScheduleKind::ZbH2:
      return weight_is_shortest && c.shape.microbatches >= 2 * c.shape.stages - 1;
    case ScheduleKind::ZbV:
      return all_equal && c.shape.microbatches >= 2 * c.shape.stages - 1;
    case ScheduleKind::DualPipe:
      return input_gradient_is_longest;
  }
  return false;
}

// True if all stages end together with the first, so that the step is longer than the work of a
// stage by the bubble also for an optimizer that waits for all of them.
bool ends_together(ScheduleKind kind) {
  return kind != ScheduleKind::ZbH2 && kind != ScheduleKind::ZbV;
}

Seconds worst_idle(const ScheduleTiming& timing) {
  return *std::ranges::max_element(timing.idle);
}

TEST(PublishedBubble, EqualsIdleTimeOfTheWorstStage) {
  std::map<ScheduleKind, int> checked;
  for (const ScheduleCase& c : all_cases()) {
    const PipelineSchedule schedule = make_schedule(c.kind, c.shape);
    for (const ChunkTimes& times : kTimes) {
      if (!is_exact(c, times)) continue;
      const auto timing = time_schedule(schedule, times);
      ASSERT_TRUE(timing) << shown(c);
      const Seconds published = published_bubble(c.kind, c.shape, times);
      EXPECT_EQ(worst_idle(*timing).value(), published.value()) << shown(c);
      if (ends_together(c.kind)) {
        const Seconds lost = timing->makespan - timing->busy.front();
        EXPECT_EQ(lost.value(), published.value()) << shown(c);
      }
      ++checked[c.kind];
    }
  }
  for (const ScheduleKind kind : enumerators<ScheduleKind>())
    EXPECT_GT(checked[kind], 50) << name_of(kind);
}

RC_GTEST_PROP(PublishedBubbleProperty, IsALowerBoundAndExactWhereDocumented, ()) {
  const ScheduleCase c = *any_case();
  const auto seconds = rc::gen::inRange(0, 8);
  const ChunkTimes times = chunk_times(*seconds, *seconds, *seconds);
  const auto timing = time_schedule(make_schedule(c.kind, c.shape), times);
  RC_ASSERT(timing.has_value());
  const Seconds published = published_bubble(c.kind, c.shape, times);
  RC_ASSERT(worst_idle(*timing) >= published);
  if (is_exact(c, times)) RC_ASSERT(worst_idle(*timing) == published);
}

// Figures of the papers in numbers, with F = B = W = 1 and 8 stages.
TEST(PublishedBubble, FormulasGiveThePapersNumbers) {
  const ChunkTimes unit = chunk_times(1, 1, 1);
  const auto bubble = [&](ScheduleKind kind, std::int64_t chunks) {
    return published_bubble(kind, {8, chunks, 32}, unit).value();
  };
  EXPECT_EQ(bubble(ScheduleKind::OneFOneB, 1), 7 * 3);
  // One third of 1F1B (arXiv 2401.10241).
  EXPECT_EQ(bubble(ScheduleKind::ZbH1, 1), 7);
  EXPECT_EQ(bubble(ScheduleKind::ZbH2, 1), 0);
  EXPECT_EQ(bubble(ScheduleKind::ZbV, 2), 0);
  // DeepSeek's table: (PP/2-1)(F&B + B - 3W) with B = 2, F&B = 3.
  EXPECT_EQ(bubble(ScheduleKind::DualPipe, 1), 3 * (3 + 2 - 3));
}

// Interleaving divides the bubble's share by the number of chunks (arXiv 2104.04473, section 2.2):
// (p-1) / (v m).
TEST(PublishedBubble, InterleavingDividesTheBubbleByTheChunks) {
  for (const std::int64_t chunks : {1, 2, 4, 8}) {
    const ScheduleShape shape{8, chunks, 64};
    const auto timing =
        time_schedule(make_schedule(ScheduleKind::Interleaved, shape), chunk_times(1, 1, 1));
    ASSERT_TRUE(timing);
    const double share = (timing->makespan - timing->busy.front()) / timing->busy.front();
    EXPECT_DOUBLE_EQ(share, 7.0 / static_cast<double>(chunks * 64));
  }
}

// Table of arXiv 2401.10241: activations in units of a stage's.
TEST(ActivationBound, GivesThePapersNumbers) {
  EXPECT_EQ(activation_bound(ScheduleKind::GPipe, {8, 1, 32}), 32);
  EXPECT_EQ(activation_bound(ScheduleKind::OneFOneB, {8, 1, 32}), 8);
  EXPECT_EQ(activation_bound(ScheduleKind::ZbH1, {8, 1, 32}), 8);
  EXPECT_EQ(activation_bound(ScheduleKind::ZbH2, {8, 1, 32}), 15);
  EXPECT_EQ(activation_bound(ScheduleKind::ZbV, {8, 2, 32}), 8 * 2);
  // DeepSeek's table: PP + 1.
  EXPECT_EQ(activation_bound(ScheduleKind::DualPipe, {8, 1, 32}), 9);
  // Megatron-LM's penalty of interleaving: 1 + (p-1) / (p v) times the p microbatches of 1F1B.
  EXPECT_DOUBLE_EQ(
      static_cast<double>(activation_bound(ScheduleKind::Interleaved, {8, 4, 32})) / 4.0,
      8.0 * (1.0 + 7.0 / (8.0 * 4.0)));
}

}  // namespace
}  // namespace shardwright
