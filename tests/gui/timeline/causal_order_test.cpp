#include "gui/timeline/causal_order.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/gui/example_step.hpp"
#include "tests/sim/step/random_scenario.hpp"

namespace shardwright::gui {
namespace {

using gui::fixtures::step_of;

Span span(std::int32_t rank, Stream stream, double start, double end, OpKind kind = OpKind::Gemm) {
  Span made;
  made.rank = rank;
  made.stream = stream;
  made.start = Seconds(start);
  made.duration = Seconds(end - start);
  made.kind = kind;
  return made;
}

std::vector<std::uint32_t> critical_path(const Timeline& timeline,
                                         const Program* program = nullptr) {
  return CausalOrder(std::make_shared<Timeline>(timeline), program).critical_path();
}

TEST(CriticalPath, FollowsWhatEndedLastAcrossStreamsAndMessages) {
  Timeline timeline;
  timeline.ranks = {{0, "stage 0"}, {1, "stage 1"}};
  timeline.spans = {span(0, Stream::Compute, 0.0, 2.0),
                    span(0, Stream::TensorParallel, 0.0, 1.0),
                    span(0, Stream::SendActivation, 2.0, 3.0, OpKind::Send),
                    span(1, Stream::Compute, 0.0, 1.0),
                    span(1, Stream::ReceiveActivation, 2.0, 3.0, OpKind::Receive),
                    span(1, Stream::Compute, 3.0, 5.0)};
  timeline.flows = {{2, 4}};
  EXPECT_EQ(critical_path(timeline), (std::vector<std::uint32_t>{0, 4, 5}));
}

TEST(CriticalPath, OfNothingIsEmpty) {
  EXPECT_TRUE(critical_path(Timeline()).empty());
}

TEST(CriticalPath, EndsWhereSpansHaveNoLength) {
  Timeline timeline;
  timeline.ranks = {{0, "stage 0"}};
  timeline.spans.assign(50, span(0, Stream::Compute, 1.0, 1.0));
  EXPECT_LE(critical_path(timeline).size(), 50U);
}

TEST(CriticalPath, EndsWhereMessagesWithoutLengthCross) {
  Timeline timeline;
  timeline.ranks = {{0, "stage 0"}, {1, "stage 1"}};
  timeline.spans = {span(0, Stream::SendActivation, 1.0, 1.0, OpKind::Send),
                    span(1, Stream::ReceiveActivation, 1.0, 1.0, OpKind::Receive),
                    span(1, Stream::SendGradient, 1.0, 1.0, OpKind::Send),
                    span(0, Stream::ReceiveGradient, 1.0, 1.0, OpKind::Receive)};
  timeline.flows = {{0, 1}, {2, 3}};
  EXPECT_LE(critical_path(timeline).size(), 4U);
}

// For every plan, with and without its program, the path ends with the step and goes from span to
// span without overlap.
TEST(CriticalPath, RunsForwardInTimeToTheEndOfTheStep) {
  EXPECT_TRUE(rc::check([] {
    const auto step = step_of(sim::fixtures::any_small_scenario());
    const std::vector<Span>& spans = step.timeline->spans;
    double end = 0.0;
    for (const Span& each : spans) end = std::max(end, each.end().value());
    for (const Program* program : {static_cast<const Program*>(nullptr), step.program.get()}) {
      const std::vector<std::uint32_t> path = critical_path(*step.timeline, program);
      RC_ASSERT(!path.empty());
      RC_ASSERT(spans[path.back()].end().value() == end);
      for (std::size_t i = 1; i < path.size(); ++i)
        RC_ASSERT(spans[path[i - 1]].end().value() <= spans[path[i]].start.value() + 2e-9);
    }
  }));
}

// The predecessor of a span ends before it starts, and each span of the path precedes the next.
TEST(CausalOrder, LeadsBackInTime) {
  EXPECT_TRUE(rc::check([] {
    const auto step = step_of(sim::fixtures::any_small_scenario());
    const std::vector<Span>& spans = step.timeline->spans;
    const CausalOrder order(step.timeline, step.program.get());
    std::size_t first_ones = 0;
    for (std::uint32_t i = 0; i < spans.size(); ++i) {
      const auto before = order.before(i);
      first_ones += before ? 0 : 1;
      RC_ASSERT(!before || spans[*before].end().value() <= spans[i].start.value() + 2e-9);
    }
    RC_ASSERT(first_ones > 0U);
    const std::vector<std::uint32_t> path = order.critical_path();
    RC_ASSERT(!order.before(path.front()).has_value());
    for (std::size_t i = 1; i < path.size(); ++i) RC_ASSERT(order.before(path[i]) == path[i - 1]);
  }));
}

}  // namespace
}  // namespace shardwright::gui
