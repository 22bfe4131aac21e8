#include "core/schedule/schedule_timing.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <tuple>

#include "tests/core/schedule/schedule_cases.hpp"

namespace shardwright {
namespace {

using TimesByPlace = std::vector<std::vector<ChunkTimes>>;

// Whole seconds, so that sums are exact.
TimesByPlace random_times(const PipelineSchedule& schedule) {
  TimesByPlace times;
  for (const auto& chunks : schedule.position) {
    times.emplace_back();
    for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      const auto numbers = *rc::gen::container<std::array<int, 3>>(rc::gen::inRange(0, 20));
      times.back().push_back(chunk_times(numbers[0], numbers[1], numbers[2]));
    }
  }
  return times;
}

// Two stages, two microbatches, F = 1, B = 2, W = 3, by hand:
//   stage 0  F1 F2 .  .  .  .  B1 …     B1 runs 7-12, B2 12-17
//   stage 1     F1 B1 B1 B1 B1 B1 F2 B2 …  B1 runs 2-7, F2 7-8, B2 8-13
TEST(ScheduleTiming, TimesAStepByHand) {
  const auto timing =
      time_schedule(make_schedule(ScheduleKind::OneFOneB, {2, 1, 2}), chunk_times(1, 2, 3));
  ASSERT_TRUE(timing);
  EXPECT_EQ(timing->slots[1].back(), (SlotTime{Seconds(8), Seconds(13)}));
  EXPECT_EQ(timing->slots[0].back(), (SlotTime{Seconds(13), Seconds(18)}));
  EXPECT_EQ(timing->makespan, Seconds(18));
  EXPECT_EQ(timing->busy, (std::vector<Seconds>{Seconds(12), Seconds(12)}));
  EXPECT_EQ(timing->idle, (std::vector<Seconds>{Seconds(6), Seconds(0)}));
}

TEST(ScheduleTiming, FindsSlotsThatWaitForEachOther) {
  PipelineSchedule schedule = make_schedule(ScheduleKind::OneFOneB, {2, 1, 2});
  // The first stage wants the gradient of microbatch 0 before it has sent it.
  std::swap(schedule.stages[0][0], schedule.stages[0][2]);
  EXPECT_FALSE(time_schedule(schedule, chunk_times(1, 1, 1)));
}

TEST(ScheduleTiming, FindsMissingSlots) {
  PipelineSchedule schedule = make_schedule(ScheduleKind::ZbH1, {2, 1, 2});
  schedule.stages[1].erase(schedule.stages[1].begin());
  EXPECT_FALSE(time_schedule(schedule, chunk_times(1, 1, 1)));
}

TEST(ScheduleTiming, RunsAPairAsOne) {
  const PipelineSchedule schedule = make_schedule(ScheduleKind::DualPipe, {2, 1, 4});
  const auto timing = time_schedule(schedule, chunk_times(1, 2, 3));
  ASSERT_TRUE(timing);
  int pairs = 0;
  for (std::size_t i = 0; i < schedule.stages[0].size(); ++i) {
    if (!schedule.stages[0][i].overlaps_next) continue;
    const SlotTime pair = timing->slots[0][i];
    EXPECT_EQ(pair, timing->slots[0][i + 1]);
    EXPECT_EQ(pair.finish - pair.start, Seconds(1 + 2 + 3));
    ++pairs;
  }
  EXPECT_GT(pairs, 0);
}

// Finish times as the least solution of "finish = latest input + duration", found by going over all
// slots again and again. Knows no order of evaluation; for schedules without pairs.
std::vector<std::vector<Seconds>> finish_by_repetition(const PipelineSchedule& schedule,
                                                       const TimesByPlace& times) {
  // (backward?, stage, chunk, microbatch)
  std::map<std::tuple<bool, int, int, int>, Seconds> passed;
  std::vector<std::vector<Seconds>> finish;
  for (const auto& slots : schedule.stages) finish.emplace_back(slots.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (int stage = 0; stage < static_cast<int>(schedule.stages.size()); ++stage) {
      Seconds clock;
      for (std::size_t i = 0; i < finish[stage].size(); ++i) {
        const Slot& slot = schedule.stages[stage][i];
        const ChunkTimes& t = times[stage][slot.chunk];
        const bool backward = slot.phase != SlotPhase::Forward;
        Seconds start = clock;
        if (slot.phase != SlotPhase::BackwardWeight) {
          const Place here{stage, slot.chunk};
          const auto from = backward ? schedule.next(here) : schedule.previous(here);
          if (from) {
            start = std::max(start, passed[{backward, from->stage, from->chunk, slot.microbatch}]);
          }
        }
        clock = start;
        if (slot.phase == SlotPhase::Forward) clock += t.forward;
        if (slot.phase == SlotPhase::Backward || slot.phase == SlotPhase::BackwardInput) {
          clock += t.backward_input;
        }
        if (slot.phase == SlotPhase::Backward || slot.phase == SlotPhase::BackwardWeight) {
          clock += t.backward_weight;
        }
        changed = changed || clock != finish[stage][i];
        finish[stage][i] = clock;
        if (slot.phase != SlotPhase::BackwardWeight) {
          passed[{backward, stage, slot.chunk, slot.microbatch}] = clock;
        }
      }
    }
  }
  return finish;
}

RC_GTEST_PROP(ScheduleTimingProperty, AgreesWithRepetitionUntilNothingChanges, ()) {
  const ScheduleCase c = *any_case();
  RC_PRE(c.kind != ScheduleKind::DualPipe && c.shape.stages * c.shape.microbatches < 150);
  const PipelineSchedule schedule = make_schedule(c.kind, c.shape);
  const TimesByPlace times = random_times(schedule);
  const auto timing = time_schedule(schedule, times);
  RC_ASSERT(timing.has_value());
  const auto expected = finish_by_repetition(schedule, times);
  for (std::size_t stage = 0; stage < expected.size(); ++stage) {
    for (std::size_t i = 0; i < expected[stage].size(); ++i) {
      RC_ASSERT(timing->slots[stage][i].finish == expected[stage][i]);
    }
  }
}

// No step is shorter than its busiest stage, nor than the way of one microbatch down and back.
RC_GTEST_PROP(ScheduleTimingProperty, MakespanIsAtLeastBusyTimeAndLatency, ()) {
  const ScheduleCase c = *any_case();
  const PipelineSchedule schedule = make_schedule(c.kind, c.shape);
  const TimesByPlace times = random_times(schedule);
  const auto timing = time_schedule(schedule, times);
  RC_ASSERT(timing.has_value());
  for (std::size_t stage = 0; stage < timing->busy.size(); ++stage) {
    RC_ASSERT(timing->idle[stage] >= Seconds(0));
    RC_ASSERT(timing->makespan >= timing->busy[stage] + timing->idle[stage]);
  }
  for (const Route& route : schedule.routes) {
    Seconds latency;
    for (const Place& place : route.places) {
      const ChunkTimes& t = times[place.stage][place.chunk];
      latency += t.forward + t.backward_input;
    }
    RC_ASSERT(timing->makespan >= latency);
  }
}

RC_GTEST_PROP(ScheduleTimingProperty, BusyTimeIsTheWorkOfTheStage, ()) {
  const ScheduleCase c = *any_case();
  const PipelineSchedule schedule = make_schedule(c.kind, c.shape);
  const TimesByPlace times = random_times(schedule);
  const auto timing = time_schedule(schedule, times);
  RC_ASSERT(timing.has_value());
  for (std::size_t stage = 0; stage < times.size(); ++stage) {
    Seconds work;
    for (std::size_t chunk = 0; chunk < times[stage].size(); ++chunk) {
      const ChunkTimes& t = times[stage][chunk];
      const Route& route = schedule.routes[schedule.route[stage][chunk]];
      work += static_cast<double>(route.microbatches.count) *
              (t.forward + t.backward_input + t.backward_weight);
    }
    RC_ASSERT(timing->busy[stage] == work);
  }
}

RC_GTEST_PROP(ScheduleTimingProperty, SlowerChunksNeverMakeAShorterStep, ()) {
  const ScheduleCase c = *any_case();
  const PipelineSchedule schedule = make_schedule(c.kind, c.shape);
  const TimesByPlace times = random_times(schedule);
  TimesByPlace slower = times;
  const auto stage = *rc::gen::inRange<std::size_t>(0, times.size());
  slower[stage].front().forward += Seconds(*rc::gen::inRange(0, 10));
  slower[stage].back().backward_weight += Seconds(*rc::gen::inRange(0, 10));
  RC_ASSERT(time_schedule(schedule, slower)->makespan >= time_schedule(schedule, times)->makespan);
}

}  // namespace
}  // namespace shardwright
