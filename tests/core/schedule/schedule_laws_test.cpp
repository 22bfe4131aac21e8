// Laws of every pipeline schedule in every shape that it can run.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "core/schedule/pipeline_schedule.hpp"
#include "core/schedule/schedule_timing.hpp"
#include "tests/core/schedule/published_figures.hpp"
#include "tests/core/schedule/schedule_cases.hpp"

namespace shardwright {
namespace {

class ScheduleLaws : public testing::TestWithParam<ScheduleKind> {};

std::string schedule_test_name(const testing::TestParamInfo<ScheduleKind>& info) {
  std::string name = name_of(info.param);
  name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
  return name;
}

// The passes of a chunk over a microbatch, as one word: "F" "B", or "F" "I" "W".
std::string phases_of(const std::vector<Slot>& slots, std::int32_t chunk, std::int32_t microbatch) {
  std::string phases;
  for (const Slot& slot : slots) {
    if (slot.chunk != chunk || slot.microbatch != microbatch) continue;
    phases += "FBIW"[static_cast<int>(slot.phase)];
  }
  return phases;
}

TEST_P(ScheduleLaws, EachChunkRunsEachMicrobatchOfItsRouteOnceAndInOrder) {
  for (const ScheduleCase& c : cases_of(GetParam())) {
    if (c.shape.stages * c.shape.microbatches > 600) continue;  // quadratic test
    const PipelineSchedule schedule = make_schedule(c.kind, c.shape);
    for (std::size_t stage = 0; stage < schedule.stages.size(); ++stage) {
      std::size_t expected_slots = 0;
      for (std::size_t chunk = 0; chunk < schedule.route[stage].size(); ++chunk) {
        const MicrobatchRange range = schedule.routes[schedule.route[stage][chunk]].microbatches;
        for (std::int32_t i = 0; i < range.count; ++i) {
          const std::string phases =
              phases_of(schedule.stages[stage], static_cast<std::int32_t>(chunk), range.first + i);
          ASSERT_TRUE(phases == "FB" || phases == "FIW") << shown(c) << ": " << phases;
          expected_slots += phases.size();
        }
      }
      ASSERT_EQ(schedule.stages[stage].size(), expected_slots) << shown(c);
    }
  }
}

TEST_P(ScheduleLaws, RoutesLeadThroughEachPartOfTheModelOnce) {
  for (const ScheduleCase& c : cases_of(GetParam())) {
    const PipelineSchedule schedule = make_schedule(c.kind, c.shape);
    std::set<std::pair<std::int32_t, std::int32_t>> places;
    std::int64_t microbatches = 0;
    for (const Route& route : schedule.routes) {
      ASSERT_EQ(static_cast<std::int64_t>(route.places.size()), c.shape.stages * c.shape.chunks);
      EXPECT_EQ(route.microbatches.first, microbatches) << shown(c);
      microbatches += route.microbatches.count;
      for (const Place& place : route.places) places.insert({place.stage, place.chunk});
    }
    EXPECT_EQ(microbatches, c.shape.microbatches) << shown(c);
    EXPECT_EQ(static_cast<std::int64_t>(places.size()),
              c.shape.stages * chunks_held(c.kind, c.shape));
  }
}

TEST_P(ScheduleLaws, NeighboursOnARouteSitOnTheSameOrAdjacentStages) {
  for (const ScheduleCase& c : cases_of(GetParam())) {
    const PipelineSchedule schedule = make_schedule(c.kind, c.shape);
    for (const Route& route : schedule.routes) {
      EXPECT_FALSE(schedule.previous(route.places.front())) << shown(c);
      EXPECT_FALSE(schedule.next(route.places.back())) << shown(c);
      for (std::size_t i = 1; i < route.places.size(); ++i) {
        const Place from = route.places[i - 1], to = route.places[i];
        EXPECT_EQ(*schedule.next(from), to) << shown(c);
        EXPECT_EQ(*schedule.previous(to), from) << shown(c);
        const std::int64_t hop = (to.stage - from.stage + c.shape.stages) % c.shape.stages;
        EXPECT_TRUE(hop <= 1 || hop == c.shape.stages - 1) << shown(c);
      }
    }
  }
}

TEST_P(ScheduleLaws, NeverDeadlocks) {
  for (const ScheduleCase& c : cases_of(GetParam())) {
    EXPECT_TRUE(time_schedule(make_schedule(c.kind, c.shape), chunk_times(1, 1, 1))) << shown(c);
  }
}

std::int64_t peak_of_list(const std::vector<Slot>& slots) {
  std::int64_t held = 0, most = 0;
  for (const Slot& slot : slots) {
    if (slot.phase == SlotPhase::Forward) most = std::max(most, ++held);
    if (slot.phase == SlotPhase::Backward || slot.phase == SlotPhase::BackwardWeight) --held;
  }
  return most;
}

// The published bound is reached, not only kept.
TEST_P(ScheduleLaws, WorstStageHoldsThePublishedActivations) {
  for (const ScheduleCase& c : cases_of(GetParam())) {
    std::int64_t most = 0;
    for (const std::vector<Slot>& slots : make_schedule(c.kind, c.shape).stages)
      most = std::max(most, peak_of_list(slots));
    EXPECT_EQ(most, activation_bound(c.kind, c.shape)) << shown(c);
  }
}

// (from stage, to stage, gradient?) and the (part of the model, microbatch) that pass, in order.
using Channel = std::tuple<std::int32_t, std::int32_t, bool>;
using Traffic = std::map<Channel, std::vector<std::pair<std::int32_t, std::int32_t>>>;

bool is_gradient(const Slot& slot) {
  return slot.phase != SlotPhase::Forward;
}

// The messages in the order in which their senders, or else their receivers, come to them.
Traffic traffic_of(const PipelineSchedule& schedule, bool by_sender) {
  Traffic traffic;
  for (std::size_t stage = 0; stage < schedule.stages.size(); ++stage) {
    for (const Slot& slot : schedule.stages[stage]) {
      if (slot.phase == SlotPhase::BackwardWeight) continue;
      const Place here{static_cast<std::int32_t>(stage), slot.chunk};
      const auto peer =
          is_gradient(slot) == by_sender ? schedule.previous(here) : schedule.next(here);
      if (!peer || peer->stage == here.stage) continue;
      const Place &from = by_sender ? here : *peer, &to = by_sender ? *peer : here;
      traffic[{from.stage, to.stage, is_gradient(slot)}].push_back(
          {schedule.position[to.stage][to.chunk], slot.microbatch});
    }
  }
  return traffic;
}

// Point-to-point channels keep the order of messages, so both ends must agree on it.
TEST_P(ScheduleLaws, NeighboursSendAndReceiveInTheSameOrder) {
  for (const ScheduleCase& c : cases_of(GetParam())) {
    const PipelineSchedule schedule = make_schedule(c.kind, c.shape);
    EXPECT_EQ(traffic_of(schedule, true), traffic_of(schedule, false)) << shown(c);
  }
}

TEST_P(ScheduleLaws, PairsAreAForwardAndTheBackwardOfAnotherChunk) {
  for (const ScheduleCase& c : cases_of(GetParam())) {
    const PipelineSchedule schedule = make_schedule(c.kind, c.shape);
    for (const auto& slots : schedule.stages) {
      for (std::size_t i = 0; i < slots.size(); ++i) {
        if (!slots[i].overlaps_next) continue;
        ASSERT_LT(i + 1, slots.size()) << shown(c);
        EXPECT_EQ(slots[i].phase, SlotPhase::Forward) << shown(c);
        EXPECT_EQ(slots[i + 1].phase, SlotPhase::Backward) << shown(c);
        EXPECT_NE(slots[i].chunk, slots[i + 1].chunk) << shown(c);
        EXPECT_FALSE(slots[i + 1].overlaps_next) << shown(c);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllSchedules, ScheduleLaws, testing::ValuesIn(all_kinds()),
                         schedule_test_name);

}  // namespace
}  // namespace shardwright
