#include "sim/step/predicted_timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "core/base/error.hpp"
#include "core/program/rank_grid.hpp"
#include "core/spec/plan_text.hpp"
#include "sim/memory/memory_replay.hpp"
#include "sim/step/full_replay.hpp"
#include "sim/step/simulate.hpp"

namespace shardwright::sim {
namespace {

class Builder {
 public:
  explicit Builder(const Program& program) : program_(program), grid_(program.plan) {}

  void add_rank(std::int64_t world_rank, const OpTimes& times) {
    const StageRank place = grid_.locate(world_rank);
    const RankProgram& rank = program_.stages[static_cast<std::size_t>(place.stage)];
    const auto number = static_cast<std::int32_t>(world_rank);
    const std::int64_t part = place.stage / program_.plan.pp;
    timeline_.ranks.push_back({number, stage_name(program_.plan, place.stage)});
    const auto first_span = timeline_.spans.size();
    for (const Call& call : rank.calls) {
      const Block& block = program_.blocks[call.block];
      for (std::size_t i = 0; i < block.ops.size(); ++i) {
        Span span = span_of(place, call, block.ops[i]);
        span.rank = number;
        span.start = times.start[call.first_op + i];
        span.duration = times.finish[call.first_op + i] - span.start;
        note_message(span, place.index + part * grid_.largest_stage());
        timeline_.spans.push_back(std::move(span));
      }
    }
    add_memory(number, rank.stage, first_span);
  }

  Timeline take() {
    for (const auto& [message, ends] : messages_) {
      if (ends.send && ends.receive) timeline_.flows.push_back({*ends.send, *ends.receive});
    }
    return std::move(timeline_);
  }

 private:
  // The place of the rank in its stage, the layer behind the boundary, direction and microbatch
  // make a message unique.
  using MessageKey = std::tuple<std::int64_t, std::int32_t, bool, std::int32_t>;
  struct Ends {
    // Indices of spans; none for a rank that is not shown.
    std::optional<std::uint32_t> send, receive;
  };

  // Leaves the rank and the time open.
  Span span_of(const StageRank& place, const Call& call, const Op& op) const {
    Span span;
    span.stream = op.stream;
    span.name = op.name;
    span.kind = op.kind;
    span.phase = op.phase;
    span.layer = call.layer;
    span.microbatch = call.microbatch;
    span.flop = model_flop(op.work);
    if (const auto* message = std::get_if<CommunicationWork>(&op.work)) {
      span.group = message->group;
      span.bytes = message->bytes;
      if (message->peer_offset != 0) {
        span.peer = static_cast<std::int32_t>(
            grid_.rank_at({place.stage + message->peer_offset, place.index}));
      }
    }
    return span;
  }

  void note_message(const Span& span, std::int64_t index) {
    if (span.kind != OpKind::Send && span.kind != OpKind::Receive) return;
    const bool gradient =
        span.stream == Stream::SendGradient || span.stream == Stream::ReceiveGradient;
    Ends& ends = messages_[MessageKey{index, span.layer, gradient, span.microbatch}];
    (span.kind == OpKind::Send ? ends.send : ends.receive) =
        static_cast<std::uint32_t>(timeline_.spans.size());
  }

  // Memory changes when the op that allocates or frees runs; ops of several streams may run in
  // another order than that of their issue, in which the allocator sees them.
  void add_memory(std::int32_t rank, std::int32_t stage, std::size_t first_span) {
    Seconds now;
    for (const MemorySample& sample : memory_curve(program_, stage)) {
      now = std::max(now, timeline_.spans[first_span + sample.op].start);
      timeline_.memory.push_back({rank, now, sample.level});
    }
  }

  const Program& program_;
  RankGrid grid_;
  Timeline timeline_;
  std::map<MessageKey, Ends> messages_;
};

OpTimes op_times(const Program& program, const Prices& prices, const FoldedReplay& replay,
                 std::size_t stage) {
  const RankProgram& rank = program.stages[stage];
  OpTimes times{.start = {}, .finish = replay.finish[stage]};
  times.start.reserve(times.finish.size());
  for (const Call& call : rank.calls) {
    const std::size_t ops = program.blocks[call.block].ops.size();
    for (std::size_t i = 0; i < ops; ++i) {
      Seconds duration = prices.blocks[call.block][i];
      if (!replay.interference.empty()) duration += replay.interference[stage][call.first_op + i];
      times.start.push_back(std::max(Seconds(0), times.finish[call.first_op + i] - duration));
    }
  }
  return times;
}

}  // namespace

std::uint64_t count_spans(const Program& program, const std::vector<std::int64_t>& further_ranks) {
  const RankGrid grid(program.plan);
  std::uint64_t spans = 0;
  for (const RankProgram& stage : program.stages) spans += stage.ops;
  for (const std::int64_t rank : further_ranks)
    spans += program.stages[static_cast<std::size_t>(grid.locate(rank).stage)].ops;
  return spans;
}

Timeline predicted_timeline(const Program& program, const Prices& prices,
                            const FoldedReplay& replay) {
  SHARDWRIGHT_CHECK(replay.finish.size() == program.stages.size(),
                    "a timeline needs the finish times of the replay");
  Builder builder(program);
  const RankGrid grid(program.plan);
  for (std::size_t stage = 0; stage < program.stages.size(); ++stage) {
    builder.add_rank(grid.rank_at({static_cast<std::int64_t>(stage), 0}),
                     op_times(program, prices, replay, stage));
  }
  return builder.take();
}

Timeline predicted_timeline(const Program& program, const FullReplay& replay) {
  Builder builder(program);
  for (const WatchedRank& watched : replay.watched) builder.add_rank(watched.rank, watched.ops);
  return builder.take();
}

std::optional<TracedStep> trace_step(const Scenario& scenario, const std::stop_token& stop) {
  PricedStep step = lower_and_price(scenario);
  const std::uint64_t ops = count_spans(step.program);
  if (ops > kMostSpans)
    throw RuntimeFailure(
        fmt::format("The step has {} million ops: too many for a timeline.", ops / 1'000'000));
  const FoldedReplay replay =
      replay_folded(step.program, step.prices, {.keep_finish_times = true, .stop = stop});
  if (replay.cancelled) return std::nullopt;
  StepResult result = step_result(scenario, step.program, step.prices, replay);
  Timeline timeline = predicted_timeline(step.program, step.prices, replay);
  return TracedStep{std::move(step.program), std::move(result), std::move(timeline)};
}

}  // namespace shardwright::sim
