#include "sim/step/predicted_timeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "core/lowering/lowering.hpp"
#include "core/program/rank_grid.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "core/timeline/perfetto.hpp"
#include "sim/memory/memory_replay.hpp"
#include "sim/step/full_replay.hpp"

namespace shardwright::sim {
namespace {

// One step with everything that a timeline is drawn from.
struct Step {
  Program program;
  Prices prices;
  FoldedReplay replay;
  Timeline timeline;
};

Step step_of(ScheduleKind schedule, std::int64_t pp, std::int64_t vpp) {
  Plan plan;
  plan.dp = 2;
  plan.tp = 2;
  plan.pp = pp;
  plan.vpp = vpp;
  plan.schedule = schedule;
  plan.global_batch = 32;
  plan.seq_len = 2048;
  const ModelSpec model = load_model("llama3.2-1b");
  const StackSpec stack = load_stack("megatron-core");
  Step step;
  step.program = lower(model, plan, stack);
  step.prices = price(step.program, load_cluster("dgx-h100"), stack);
  step.replay = replay_folded(step.program, step.prices, {.keep_finish_times = true});
  step.timeline = predicted_timeline(step.program, step.prices, step.replay);
  return step;
}

class PredictedTimeline
    : public ::testing::TestWithParam<std::tuple<ScheduleKind, std::int64_t, std::int64_t>> {
 protected:
  const Step step_ =
      step_of(std::get<0>(GetParam()), std::get<1>(GetParam()), std::get<2>(GetParam()));
};

TEST_P(PredictedTimeline, HasEachOpOnce) {
  std::size_t ops = 0;
  for (const RankProgram& rank : step_.program.stages) ops += rank.ops;
  EXPECT_EQ(step_.timeline.spans.size(), ops);
  EXPECT_EQ(step_.timeline.ranks.size(), step_.program.stages.size());
}

TEST_P(PredictedTimeline, SpansOfAStreamDoNotOverlap) {
  std::map<std::tuple<std::int32_t, Stream, std::int32_t>, std::vector<const Span*>> lanes;
  for (const Span& span : step_.timeline.spans)
    lanes[{span.rank, span.stream, span.peer}].push_back(&span);
  for (auto& [lane, spans] : lanes) {
    std::ranges::stable_sort(spans,
                             [](const Span* a, const Span* b) { return a->start < b->start; });
    for (std::size_t i = 1; i < spans.size(); ++i) {
      ASSERT_LE(spans[i - 1]->end().value(), spans[i]->start.value() + 1e-12)
          << spans[i - 1]->name << " and " << spans[i]->name;
    }
  }
}

TEST_P(PredictedTimeline, StreamsAreAsBusyAsTheReplaySays) {
  std::vector<std::array<double, kStreams>> busy(step_.program.stages.size());
  const RankGrid grid(step_.program.plan);
  for (const Span& span : step_.timeline.spans) {
    const StageRank place = grid.locate(span.rank);
    EXPECT_EQ(place.index, 0);
    busy[static_cast<std::size_t>(place.stage)][static_cast<std::size_t>(span.stream)] +=
        span.duration.value();
  }
  for (std::size_t stage = 0; stage < busy.size(); ++stage) {
    for (std::size_t stream = 0; stream < busy[stage].size(); ++stream)
      EXPECT_NEAR(busy[stage][stream], step_.replay.busy[stage][stream].value(), 1e-9);
  }
}

TEST_P(PredictedTimeline, EndsWithTheStep) {
  Seconds last;
  for (const Span& span : step_.timeline.spans) last = std::max(last, span.end());
  EXPECT_NEAR(last.value(), step_.replay.step.value(), 1e-12);
}

TEST_P(PredictedTimeline, JoinsEachSendWithItsReceive) {
  const Timeline& timeline = step_.timeline;
  const auto sends = std::ranges::count_if(
      timeline.spans, [](const Span& span) { return span.kind == OpKind::Send; });
  EXPECT_EQ(static_cast<std::ptrdiff_t>(timeline.flows.size()), sends);
  for (const Flow& flow : timeline.flows) {
    const Span& send = timeline.spans[flow.from];
    const Span& receive = timeline.spans[flow.to];
    EXPECT_EQ(send.kind, OpKind::Send);
    EXPECT_EQ(receive.kind, OpKind::Receive);
    EXPECT_EQ(send.peer, receive.rank);
    EXPECT_EQ(receive.peer, send.rank);
    EXPECT_EQ(send.bytes, receive.bytes);
    EXPECT_LE(send.start, receive.end());
  }
}

TEST_P(PredictedTimeline, MemoryNeverGoesBackInTime) {
  std::map<std::int32_t, Seconds> now;
  for (const MemoryLevel& level : step_.timeline.memory) {
    EXPECT_GE(level.time, now[level.rank]);
    EXPECT_LE(level.time, step_.replay.step);
    now[level.rank] = level.time;
  }
  EXPECT_EQ(now.size(), step_.program.stages.size());
}

// The most that a rank of the trace holds is the peak that the step reports, context, communicators
// and fragmentation included; it never holds less than those.
TEST_P(PredictedTimeline, MemoryCounterReachesTheReportedPeak) {
  StackSpec stack = load_stack("megatron-core");
  ASSERT_GT(stack.memory.context, Bytes());
  ASSERT_GT(stack.memory.communicator, Bytes());
  stack.memory.fragmentation = 0.07;
  Timeline timeline = step_.timeline;
  add_reserved_memory(timeline, step_.program.plan, load_model("llama3.2-1b"), stack);
  const std::vector<MemoryPeak> peaks = peak_memory(step_.program, stack);
  for (std::size_t i = 0; i < timeline.ranks.size(); ++i) {
    double highest = 0.0;
    for (const MemoryLevel& level : timeline.memory) {
      if (level.rank != timeline.ranks[i].rank) continue;
      EXPECT_GE(level.level, peaks[i].outside_allocator);
      highest = std::max(highest, level.level.value());
    }
    EXPECT_NEAR(highest, peaks[i].peak.value(), 1e-9 * highest);
  }
}

// Rounded to nanoseconds at both ends, neighbours still do not overlap.
TEST_P(PredictedTimeline, TraceHasNoOverlappingEventsOnAThread) {
  std::ostringstream out;
  write_perfetto(step_.timeline, out);
  const auto trace = nlohmann::json::parse(out.str());
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> threads;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const double start = event.at("ts").get<double>();
    threads[{event.at("pid"), event.at("tid")}].emplace_back(start,
                                                             start + event.at("dur").get<double>());
  }
  for (auto& [thread, spans] : threads) {
    std::ranges::sort(spans);
    for (std::size_t i = 1; i < spans.size(); ++i)
      ASSERT_LE(spans[i - 1].second, spans[i].first + 1e-6);
  }
}

// Two ways to the same picture: one representative of each stage replayed alone, or among all
// ranks.
TEST_P(PredictedTimeline, OfTheFullReplayIsTheSameWhereAllRanksAreAlike) {
  FullOptions options;
  for (const TimelineRank& rank : step_.timeline.ranks) options.watched_ranks.push_back(rank.rank);
  const Timeline full = predicted_timeline(
      step_.program, replay_full(step_.program, load_cluster("dgx-h100"), step_.prices, options));
  EXPECT_EQ(full.ranks, step_.timeline.ranks);
  EXPECT_EQ(full.flows, step_.timeline.flows);
  ASSERT_EQ(full.spans.size(), step_.timeline.spans.size());
  for (std::size_t i = 0; i < full.spans.size(); ++i) {
    Span span = full.spans[i];
    const Span& expected = step_.timeline.spans[i];
    EXPECT_NEAR(span.start.value(), expected.start.value(), 1e-9);
    EXPECT_NEAR(span.end().value(), expected.end().value(), 1e-9);
    span.start = expected.start;
    span.duration = expected.duration;
    ASSERT_EQ(span, expected);
  }
}

// Messages of ranks at other places of their stage are others.
TEST_P(PredictedTimeline, OfTheFullReplayJoinsMessagesOfTheirOwnPipelineOnly) {
  FullOptions options;
  for (std::int64_t rank = 0; rank < step_.program.plan.world_size(); ++rank)
    options.watched_ranks.push_back(rank);
  const Timeline full = predicted_timeline(
      step_.program, replay_full(step_.program, load_cluster("dgx-h100"), step_.prices, options));
  const auto places = static_cast<std::size_t>(step_.program.plan.dp * step_.program.plan.tp);
  EXPECT_EQ(full.flows.size(), places * step_.timeline.flows.size());
  for (const Flow& flow : full.flows) {
    EXPECT_EQ(full.spans[flow.from].peer, full.spans[flow.to].rank);
    EXPECT_EQ(full.spans[flow.from].start, full.spans[flow.to].start);
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, PredictedTimeline,
                         ::testing::Values(std::tuple{ScheduleKind::OneFOneB, 1, 1},
                                           std::tuple{ScheduleKind::OneFOneB, 4, 1},
                                           std::tuple{ScheduleKind::Interleaved, 4, 2},
                                           std::tuple{ScheduleKind::ZbV, 4, 2}));

}  // namespace
}  // namespace shardwright::sim
