#include "sim/step/gap_blame.hpp"

#include <algorithm>

#include "core/program/groups.hpp"

namespace shardwright::sim {

namespace {

// The model-parallel ranks of a plan with one stage are its tensor-parallel ones.
Axis exposed_axis(const OpTime& op) {
  const bool one_stage = stays_on_stage(op.rendezvous);
  return op.group == Group::ModelParallel && one_stage ? Axis::Tensor : axis_of(op.group);
}

}  // namespace

void explain_gap(const Gap& gap, std::span<const OpTime> ops, TimeBreakdown& time) {
  double left = gap.start - gap.free;
  if (left <= 0.0) return;
  // The host may itself have waited for the cause.
  const double issuing =
      gap.cause == kNoOp ? left : std::clamp(gap.start - ops[gap.cause].finish, 0.0, left);
  time.host += Seconds(issuing);
  left -= issuing;
  std::uint32_t cause = gap.cause;
  // The time lost to all that is late along the causes: each is late by what the one before it is
  // late by, too.
  double stalled = 0.0;
  while (left > 0.0) {
    const OpTime& op = ops[cause];
    const bool alone = stays_on_stage(op.rendezvous);
    const bool has_cause = alone && op.cause != kNoOp && ops[op.cause].communicates;
    const auto duration = static_cast<double>(op.duration);
    const double late = alone ? std::max(0.0, static_cast<double>(op.late) - stalled) : 0.0;
    const double stall = std::clamp(left - duration, 0.0, late);
    stalled += stall;
    // A collective is exposed from the moment that something needs it; what comes before a message
    // or a collective of several stages is waiting for the others.
    const double moving = alone && !has_cause ? left - stall : std::min(left, duration);
    Seconds& exposed = op.copies ? time.offload : time.exposed[exposed_axis(op)];
    exposed += Seconds(moving);
    time.stall += Seconds(stall);
    left -= moving + stall;
    if (!has_cause) break;
    cause = op.cause;
  }
  time.bubble += Seconds(std::max(left, 0.0));
}

void explain_end(double computed, double gathered, double step, TimeBreakdown& time) {
  const double own_end = std::max(computed, gathered);
  time.exposed[Axis::Data] += Seconds(own_end - computed);
  time.bubble += Seconds(step - own_end);
}

}  // namespace shardwright::sim
