#include "sim/step/predicted_timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/error.hpp"
#include "sim/memory/memory_replay.hpp"

namespace shardwright::sim {
namespace {

class Builder {
 public:
  Builder(const Program& program, const Prices& prices, const FoldedReplay& replay)
      : program_(program), prices_(prices), replay_(replay) {}

  Timeline build() {
    for (const RankProgram& rank : program_.stages) add_stage(rank);
    for (const auto& [message, ends] : messages_)
      timeline_.flows.push_back({ends.first, ends.second});
    return std::move(timeline_);
  }

 private:
  // The layer behind the boundary, direction and microbatch make a message unique.
  using MessageKey = std::tuple<std::int32_t, bool, std::int32_t>;

  void add_stage(const RankProgram& rank) {
    timeline_.ranks.push_back({rank.stage, fmt::format("stage {}", rank.stage)});
    const auto first_span = timeline_.spans.size();
    for (const Call& call : rank.calls) {
      const Block& block = program_.blocks[call.block];
      for (std::size_t i = 0; i < block.ops.size(); ++i) add_span(rank, call, block.ops[i], i);
    }
    add_memory(rank.stage, first_span);
  }

  void add_span(const RankProgram& rank, const Call& call, const Op& op, std::size_t i) {
    const FinishTimes& finish = replay_.finish[static_cast<std::size_t>(rank.stage)];
    Span span;
    span.rank = rank.stage;
    span.stream = op.stream;
    span.name = op.name;
    span.duration = prices_.blocks[call.block][i];
    if (!replay_.interference.empty())
      span.duration +=
          replay_.interference[static_cast<std::size_t>(rank.stage)][call.first_op + i];
    span.start = std::max(Seconds(0), finish[call.first_op + i] - span.duration);
    span.kind = op.kind;
    span.phase = op.phase;
    span.layer = call.layer;
    span.microbatch = call.microbatch;
    span.flop = model_flop(op.work);
    if (const auto* message = std::get_if<CommunicationWork>(&op.work)) {
      span.group = message->group;
      span.bytes = message->bytes;
      if (message->peer_offset != 0) span.peer = rank.stage + message->peer_offset;
    }
    note_message(span);
    timeline_.spans.push_back(std::move(span));
  }

  void note_message(const Span& span) {
    if (span.kind != OpKind::Send && span.kind != OpKind::Receive) return;
    const bool gradient =
        span.stream == Stream::SendGradient || span.stream == Stream::ReceiveGradient;
    auto& ends = messages_[MessageKey{span.layer, gradient, span.microbatch}];
    const auto index = static_cast<std::uint32_t>(timeline_.spans.size());
    (span.kind == OpKind::Send ? ends.first : ends.second) = index;
  }

  // Memory changes when the op that allocates or frees runs; ops of several streams may run in
  // another order than that of their issue, in which the allocator sees them.
  void add_memory(std::int32_t stage, std::size_t first_span) {
    Seconds now;
    for (const MemorySample& sample : memory_curve(program_, stage)) {
      now = std::max(now, timeline_.spans[first_span + sample.op].start);
      timeline_.memory.push_back({stage, now, sample.level});
    }
  }

  const Program& program_;
  const Prices& prices_;
  const FoldedReplay& replay_;
  Timeline timeline_;
  std::map<MessageKey, std::pair<std::uint32_t, std::uint32_t>> messages_;  // send, receive
};

}  // namespace

Timeline predicted_timeline(const Program& program, const Prices& prices,
                            const FoldedReplay& replay) {
  SHARDWRIGHT_CHECK(replay.finish.size() == program.stages.size(),
                    "a timeline needs the finish times of the replay");
  return Builder(program, prices, replay).build();
}

}  // namespace shardwright::sim
