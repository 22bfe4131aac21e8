#include "executor/runtime/step_recorder.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/spec/plan_text.hpp"
#include "executor/comm/socket.hpp"

namespace shardwright::executor {
namespace {

Seconds seconds(StepRecorder::Clock::duration duration) {
  return Seconds(std::chrono::duration<double>(duration).count());
}

}  // namespace

StepRecorder::StepRecorder(const Plan& plan, std::int64_t rank)
    : grid_(plan), rank_(static_cast<std::int32_t>(rank)), origin_(Clock::now()) {
  timeline_.origin = TimelineOrigin::Measured;
  timeline_.ranks.push_back({rank_, stage_name(plan, grid_.locate(rank).stage), host_name(),
                             seconds(origin_.time_since_epoch())});
}

void StepRecorder::add(const Op& op, const Call& call, Clock::time_point start,
                       Clock::time_point end) {
  Span span;
  span.rank = rank_;
  span.stream = op.stream;
  span.name = op.name;
  span.start = seconds(start - origin_);
  span.duration = seconds(end - start);
  span.kind = op.kind;
  span.phase = op.phase;
  span.layer = call.layer;
  span.microbatch = call.microbatch;
  span.flop = model_flop(op.work);
  if (const auto* work = std::get_if<CommunicationWork>(&op.work)) {
    span.bytes = work->bytes;
    if (op.kind == OpKind::Send || op.kind == OpKind::Receive) {
      StageRank peer = grid_.locate(rank_);
      peer.stage += work->peer_offset;
      span.peer = static_cast<std::int32_t>(grid_.rank_at(peer));
    } else {
      span.group = work->group;
    }
  }
  const std::lock_guard lock(mutex_);
  timeline_.spans.push_back(std::move(span));
}

void StepRecorder::issued(Clock::duration time) {
  timeline_.ranks.front().issue = seconds(time);
}

Timeline StepRecorder::take() {
  std::stable_sort(timeline_.spans.begin(), timeline_.spans.end(),
                   [](const Span& a, const Span& b) { return a.start < b.start; });
  return std::exchange(timeline_, {});
}

}  // namespace shardwright::executor
