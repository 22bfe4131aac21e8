// The schedules against the figures of the papers that introduced them.
#include <gtest/gtest.h>

#include "core/schedule/pipeline_schedule.hpp"
#include "core/schedule/schedule_timing.hpp"
#include "tests/core/schedule/schedule_cases.hpp"

namespace shardwright {
namespace {

const std::vector<ChunkTimes> kEqual = {chunk_times(1, 1, 1)};
// Integers, so that sums of seconds are exact.
const std::vector<ChunkTimes> kShortWeights = {chunk_times(1, 1, 1), chunk_times(4, 5, 3),
                                               chunk_times(5, 4, 3), chunk_times(2, 2, 1),
                                               chunk_times(1, 3, 1)};
const std::vector<ChunkTimes> kShortForward = {chunk_times(1, 1, 1), chunk_times(4, 5, 3),
                                               chunk_times(3, 4, 4), chunk_times(2, 2, 1),
                                               chunk_times(1, 3, 1)};
const std::vector<ChunkTimes> kAny = {chunk_times(1, 1, 1), chunk_times(4, 5, 3),
                                      chunk_times(5, 4, 3), chunk_times(3, 4, 4),
                                      chunk_times(1, 3, 1), chunk_times(2, 1, 5)};

struct BubbleCase {
  ScheduleKind kind;
  std::int64_t microbatches_to_fill;  // for each stage …
  std::int64_t less;                  // … less this
  const std::vector<ChunkTimes>* times;
  // The step ends as late as a stage that idles for the bubble; else only the worst stage's own
  // span is as long.
  bool bounds_makespan;
};

const std::vector<BubbleCase> kBubbles = {
    {ScheduleKind::GPipe, 0, 0, &kAny, true},
    {ScheduleKind::OneFOneB, 0, 0, &kAny, true},
    {ScheduleKind::Interleaved, 0, 0, &kAny, true},
    {ScheduleKind::ZbH1, 1, 0, &kShortWeights, true},
    {ScheduleKind::ZbH2, 2, 1, &kShortWeights, false},
    {ScheduleKind::ZbV, 2, 1, &kEqual, false},
    {ScheduleKind::DualPipe, 0, 0, &kShortForward, true},
};

Seconds worst_idle(const ScheduleTiming& timing) {
  return *std::max_element(timing.idle.begin(), timing.idle.end());
}

TEST(PublishedBubble, EqualsIdleTimeOfTheWorstStage) {
  for (const BubbleCase& bubble : kBubbles) {
    int checked = 0;
    for (const ScheduleCase& c : cases_of(bubble.kind)) {
      if (c.shape.microbatches < bubble.microbatches_to_fill * c.shape.stages - bubble.less)
        continue;
      const PipelineSchedule schedule = make_schedule(c.kind, c.shape);
      for (const ChunkTimes& times : *bubble.times) {
        const auto timing = time_schedule(schedule, times);
        ASSERT_TRUE(timing) << shown(c);
        const Seconds published = published_bubble(c.kind, c.shape, times);
        EXPECT_EQ(worst_idle(*timing).value(), published.value()) << shown(c);
        if (bubble.bounds_makespan) {
          EXPECT_EQ((timing->makespan - timing->busy.front()).value(), published.value())
              << shown(c);
        }
        ++checked;
      }
    }
    EXPECT_GT(checked, 10) << name_of(bubble.kind);
  }
}

TEST(PublishedBubble, IsALowerBoundForAnyEqualStages) {
  for (const ScheduleCase& c : all_cases()) {
    const PipelineSchedule schedule = make_schedule(c.kind, c.shape);
    for (const ChunkTimes& times : kAny) {
      const auto timing = time_schedule(schedule, times);
      ASSERT_TRUE(timing) << shown(c);
      EXPECT_GE(worst_idle(*timing), published_bubble(c.kind, c.shape, times)) << shown(c);
    }
  }
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
