#include "core/schedule/pipeline_schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/spec/plan.hpp"
#include "tests/core/schedule/schedule_cases.hpp"

namespace shardwright {
namespace {

using testing::HasSubstr;

// "F1 F2 B1 …": microbatches from 1 as in the papers' figures, chunks as primes.
std::string drawn(const std::vector<Slot>& slots, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < std::min(count, slots.size()); ++i) {
    text += i == 0 ? "" : " ";
    text += "FBIW"[static_cast<int>(slots[i].phase)] + std::to_string(slots[i].microbatch + 1) +
            std::string(static_cast<std::size_t>(slots[i].chunk), '\'');
  }
  return text;
}

// arXiv 2104.04473, figure 4, top: 4 devices, 8 microbatches.
TEST(OneFOneB, FollowsTheFigureOfThePaper) {
  const PipelineSchedule schedule = make_schedule(ScheduleKind::OneFOneB, {4, 1, 8});
  EXPECT_EQ(drawn(schedule.stages[0], 8), "F1 F2 F3 F4 B1 F5 B2 F6");
  EXPECT_EQ(drawn(schedule.stages[2], 6), "F1 F2 B1 F3 B2 F4");
  EXPECT_EQ(drawn(schedule.stages[3], 6), "F1 B1 F2 B2 F3 B3");
}

// The same figure, bottom: 2 chunks per device.
TEST(Interleaved, FollowsTheFigureOfThePaper) {
  const PipelineSchedule schedule = make_schedule(ScheduleKind::Interleaved, {4, 2, 8});
  EXPECT_EQ(drawn(schedule.stages[0], 13), "F1 F2 F3 F4 F1' F2' F3' F4' F5 F6 F7 B1' F8");
  EXPECT_EQ(drawn(schedule.stages[3], 8), "F1 F2 F3 F4 F1' B1' F2' B2'");
}

TEST(Interleaved, WithOneChunkIsOneFOneB) {
  for (const ScheduleCase& c : cases_of(ScheduleKind::OneFOneB)) {
    EXPECT_EQ(make_schedule(ScheduleKind::Interleaved, c.shape),
              make_schedule(ScheduleKind::OneFOneB, c.shape))
        << shown(c);
  }
}

// Chunks in a V: the last part of the model lies beside the first.
TEST(ZbV, PlacesTheLastPartOfTheModelOnTheFirstStage) {
  const PipelineSchedule schedule = make_schedule(ScheduleKind::ZbV, {4, 2, 8});
  const std::vector<std::vector<std::int32_t>> v = {{0, 7}, {1, 6}, {2, 5}, {3, 4}};
  EXPECT_EQ(schedule.position, v);
}

TEST(DualPipe, SendsTheHalvesOfTheBatchFromBothEnds) {
  const PipelineSchedule schedule = make_schedule(ScheduleKind::DualPipe, {4, 1, 8});
  const std::vector<std::vector<std::int32_t>> both_ways = {{0, 3}, {1, 2}, {2, 1}, {3, 0}};
  EXPECT_EQ(schedule.position, both_ways);
  EXPECT_EQ(schedule.stages[0].front().microbatch, 0);
  EXPECT_EQ(schedule.stages[3].front().microbatch, 4);
}

// The stages at equal distance from the ends run the same list with the directions exchanged.
TEST(DualPipe, IsSymmetric) {
  const PipelineSchedule schedule = make_schedule(ScheduleKind::DualPipe, {6, 1, 16});
  for (std::size_t stage = 0; stage < 6; ++stage) {
    std::vector<Slot> mirrored = schedule.stages[5 - stage];
    for (Slot& slot : mirrored) {
      slot.chunk = 1 - slot.chunk;
      slot.microbatch = (slot.microbatch + 8) % 16;
    }
    EXPECT_EQ(schedule.stages[stage], mirrored);
  }
}

TEST(WhyNot, NamesWhatIsWrong) {
  const auto reason = [](ScheduleKind kind, ScheduleShape shape) {
    return why_not(kind, shape).value_or("");
  };
  EXPECT_THAT(reason(ScheduleKind::OneFOneB, {4, 1, 0}), HasSubstr("at least 1 microbatch"));
  EXPECT_THAT(reason(ScheduleKind::OneFOneB, {0, 1, 1}), HasSubstr("at least 1 stage"));
  EXPECT_THAT(reason(ScheduleKind::OneFOneB, {4, 0, 1}), HasSubstr("at least 1 model chunk"));
  EXPECT_THAT(reason(ScheduleKind::OneFOneB, {4, 2, 8}), HasSubstr("1 model chunk per stage"));
  EXPECT_THAT(reason(ScheduleKind::Interleaved, {4, 2, 6}), HasSubstr("multiple of the 4"));
  EXPECT_THAT(reason(ScheduleKind::Interleaved, {1, 2, 6}), HasSubstr("2 pipeline stages"));
  EXPECT_THAT(reason(ScheduleKind::ZbV, {4, 1, 8}), HasSubstr("2 model chunks"));
  EXPECT_THAT(reason(ScheduleKind::DualPipe, {3, 1, 8}), HasSubstr("even number of pipeline"));
  EXPECT_THAT(reason(ScheduleKind::DualPipe, {4, 1, 9}), HasSubstr("even number of microbatches"));
  EXPECT_THAT(reason(ScheduleKind::DualPipe, {4, 1, 6}), HasSubstr("at least 8"));
  EXPECT_THAT(reason(ScheduleKind::DualPipe, {4, 2, 8}), HasSubstr("1 model chunk"));
}

TEST(WhyNot, RefusesNumbersThatWouldFillTheMemory) {
  EXPECT_TRUE(why_not(ScheduleKind::GPipe, {1'000'000, 1, 1'000'000'000'000}));
  EXPECT_FALSE(why_not(ScheduleKind::Interleaved, {64, 16, 4096}));
}

TEST(WhyNot, LetsEveryScheduleRunSomeShape) {
  for (const ScheduleKind kind : enumerators<ScheduleKind>())
    EXPECT_GT(cases_of(kind).size(), 20u) << name_of(kind);
}

TEST(MakeSchedule, AbortsOnAShapeThatCannotRun) {
  EXPECT_DEATH(make_schedule(ScheduleKind::ZbV, {4, 1, 8}), "2 model chunks");
}

TEST(ShapeOf, TakesTheNumbersOfThePlan) {
  Plan plan;
  plan.dp = 4;
  plan.pp = 8;
  plan.vpp = 2;
  plan.micro_batch = 2;
  plan.global_batch = 256;
  const ScheduleShape expected{8, 2, 32};
  EXPECT_EQ(shape_of(plan), expected);
}

}  // namespace
}  // namespace shardwright
