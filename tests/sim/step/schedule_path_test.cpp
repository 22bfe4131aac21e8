// The longest way through a schedule's list against the list's own timing.
#include "sim/step/schedule_path.hpp"

#include <gtest/gtest.h>

#include <random>

#include "core/schedule/schedule_timing.hpp"

namespace shardwright::sim {
namespace {

// Schedules whose slots follow each other, without pairs.
constexpr ScheduleKind kKinds[] = {ScheduleKind::GPipe,       ScheduleKind::OneFOneB,
                                   ScheduleKind::Interleaved, ScheduleKind::ZbH1,
                                   ScheduleKind::ZbH2,        ScheduleKind::ZbV};

ScheduleShape shape_with(ScheduleKind kind, std::int64_t stages, std::int64_t microbatches) {
  const bool has_chunks = kind == ScheduleKind::Interleaved || kind == ScheduleKind::ZbV;
  return {stages, has_chunks ? 2 : 1, microbatches};
}

// Each chunk with times of its own.
NominalTimes random_times(std::mt19937& random, const PipelineSchedule& schedule) {
  std::uniform_int_distribution<std::int16_t> any(1, 9);
  NominalTimes times;
  for (std::size_t i = 0; i < schedule.routes.front().places.size(); ++i) {
    NominalChunk& chunk = times.chunks.emplace_back();
    chunk.first = static_cast<std::int32_t>(i);
    const std::int16_t forward = any(random), input = any(random), weight = any(random);
    chunk.behind_slot = {forward, static_cast<std::int16_t>(input + weight), input, weight};
    chunk.behind_input = chunk.behind_slot;
  }
  return times;
}

double makespan(const PipelineSchedule& schedule, const NominalTimes& times) {
  std::vector<std::vector<ChunkTimes>> of_stages;
  for (const std::vector<std::int32_t>& positions : schedule.position) {
    std::vector<ChunkTimes>& of_chunks = of_stages.emplace_back();
    for (const std::int32_t position : positions) {
      const NominalChunk::Times& slot =
          times.chunks[static_cast<std::size_t>(position)].behind_slot;
      of_chunks.push_back({Seconds(slot[0]), Seconds(slot[2]), Seconds(slot[3])});
    }
  }
  return time_schedule(schedule, of_stages)->makespan.value();
}

double time_of(const std::vector<PassedSlots>& passed, const NominalTimes& times) {
  double sum = 0.0;
  for (std::size_t i = 0; i < passed.size(); ++i) {
    for (std::size_t slot = 0; slot < kSlotPhases; ++slot) {
      sum += passed[i].behind_slot[slot] * times.chunks[i].behind_slot[slot] +
             passed[i].behind_input[slot] * times.chunks[i].behind_input[slot] +
             passed[i].reducing[slot] * times.chunks[i].reducing[slot];
    }
  }
  return sum;
}

double time_of(const SchedulePath& path, const NominalTimes& times) {
  return time_of(path.chunks, times) + path.messages * times.message;
}

TEST(SchedulePath, TakesAsLongAsTheList) {
  std::mt19937 random(1);
  for (const ScheduleKind kind : kKinds) {
    for (const std::int64_t stages : {2, 3, 8}) {
      const PipelineSchedule schedule = make_schedule(kind, shape_with(kind, stages, 3 * stages));
      const NominalTimes times = random_times(random, schedule);
      EXPECT_DOUBLE_EQ(time_of(find_path(list_slots(schedule), times), times),
                       makespan(schedule, times))
          << name_of(kind) << " " << stages;
    }
  }
}

TEST(SchedulePath, TakesNoLongerThanTheListForAnyOtherTimes) {
  std::mt19937 random(2);
  for (const ScheduleKind kind : kKinds) {
    const PipelineSchedule schedule = make_schedule(kind, shape_with(kind, 4, 12));
    const SchedulePath path = find_path(list_slots(schedule), random_times(random, schedule));
    for (int i = 0; i < 20; ++i) {
      const NominalTimes other = random_times(random, schedule);
      EXPECT_LE(time_of(path, other), makespan(schedule, other)) << name_of(kind);
    }
  }
}

// One microbatch, there and back: each neighbour's message counts once in each direction.
TEST(SchedulePath, CountsMessages) {
  const PipelineSchedule schedule = make_schedule(ScheduleKind::OneFOneB, {4, 1, 1});
  std::mt19937 random(3);
  NominalTimes times = random_times(random, schedule);
  times.message = 5;
  EXPECT_EQ(find_path(list_slots(schedule), times).messages, 6.0);
}

// The gathers behind a slot wait for its reductions, and a weight gradient gathers nothing.
TEST(SchedulePath, WaitsForReductionsBeforeGathers) {
  const PipelineSchedule schedule = make_schedule(ScheduleKind::ZbH1, {1, 1, 4});
  NominalTimes times;
  NominalChunk& chunk = times.chunks.emplace_back();
  chunk.behind_slot = chunk.behind_input = {1, 2, 1, 1};
  chunk.reducing = {0, 0, 0, 3};
  EXPECT_EQ(time_of(find_path(list_slots(schedule), times), times), 4 * 3 + 3 * 3);
}

// The steady state begins with 6 p microbatches.
TEST(SchedulePath, RepeatsItsSteadyState) {
  std::mt19937 random(4);
  for (const ScheduleKind kind : kKinds) {
    const PipelineSchedule some = make_schedule(kind, shape_with(kind, 4, 24));
    const PipelineSchedule more = make_schedule(kind, shape_with(kind, 4, 96));
    const NominalTimes times = random_times(random, some);
    const SchedulePath path = find_path(list_slots(some), times);
    const double expected = makespan(more, times);
    const double found = time_of(path, times) + 9.0 * time_of(path.steady_chunks, times);
    EXPECT_NEAR(found / expected, 1.0, 0.01) << name_of(kind);
  }
}

}  // namespace
}  // namespace shardwright::sim
