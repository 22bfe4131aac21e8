#include "sim/step/folded_rank.hpp"

#include <algorithm>
#include <utility>

namespace shardwright::sim {
namespace {

// Stands for the communication before an op on its stream.
constexpr std::uint32_t kStreamBefore = kNoOp - 1;

bool is_queued(const FlatOp& op) {
  return op.shares_device && stays_on_stage(op.rendezvous);
}

}  // namespace

bool FoldedRank::find_start(const FlatProgram& flat, const Call& of, const FlatOp& at_hand,
                            std::span<const Wait> waits, RankStart& start) {
  const auto stream = static_cast<std::size_t>(at_hand.stream);
  const bool queued = is_queued(at_hand);
  if (at_hand.rendezvous != Rendezvous::PointToPoint) {
    if (!queued) settle_collectives(at_hand.stream);
    if (!settle_stream(stream)) return false;
  }
  const double free = at_hand.rendezvous == Rendezvous::PointToPoint ? 0.0 : stream_free[stream];
  start = {OpStart::issued(host + at_hand.launch, free, held_by, kStreamBefore), free};
  for (std::uint32_t i = 0; i < at_hand.waits; ++i) {
    const std::uint32_t on = of.first_op + flat.waits[at_hand.first_wait + i];
    if (!wait_for(on, queued, start)) return false;
  }
  const std::uint32_t number = of.first_op + static_cast<std::uint32_t>(op);
  for (const Wait& wait : waits) {
    if (wait.op == number && !wait_for(wait.on, queued, start)) return false;
  }
  // The op may have been settled meanwhile.
  if (start.after != kNoOp && ops[start.after].finish != kUnknownTime)
    wait_for(std::exchange(start.after, kNoOp), queued, start);
  // The stream is asked last: settling what the op waits for may have ended others of its stream.
  if (start.cause == kStreamBefore)
    start.cause = at_hand.stream == Stream::Compute ? kNoOp : stream_last[stream];
  return true;
}

// Takes an op that has to end first into account; false if its end is not known yet. One collective
// that another one waits for need not be settled.
bool FoldedRank::wait_for(std::uint32_t on, bool queued, RankStart& start) {
  if (ops[on].finish == kUnknownTime && device.is_queued(on)) {
    if (queued && (start.after == kNoOp || start.after == on)) {
      start.after = on;
      return true;
    }
    settle_collective(on);
  }
  start.OpStart::wait_for(ops[on].finish, on);
  return ops[on].finish != kUnknownTime;
}

double FoldedRank::issue(const FlatOp& at_hand) {
  const double issued = host + at_hand.launch;
  host = issued + at_hand.further_launch;
  if (at_hand.kernel) held_by = kNoOp;
  return issued;
}

void FoldedRank::record(const FlatOp& at_hand, std::uint32_t number, std::uint32_t cause) {
  ops[number] = OpTime();
  ops[number].duration = static_cast<float>(at_hand.duration);
  ops[number].describe(at_hand, cause);
}

void FoldedRank::run(const FlatOp& at_hand, std::uint32_t number, const RankStart& start) {
  if (is_queued(at_hand)) {
    queue(at_hand, number, start);
  } else {
    run_now(at_hand, number, start);
  }
}

void FoldedRank::queue(const FlatOp& at_hand, std::uint32_t number, const RankStart& start) {
  device.queue(at_hand.stream, {number, start, start.after, at_hand.duration, at_hand.port});
  take_ended();
  if (!at_hand.holds_host) return;
  settle_collective(number);
  host = ops[number].finish + at_hand.further_launch;
}

void FoldedRank::run_now(const FlatOp& at_hand, std::uint32_t number, const RankStart& start) {
  if (at_hand.stream == Stream::Compute)
    explain_gap({start.free, start.ready, start.cause}, ops, time);
  const double finish = at_hand.kernel ? finish_of_kernel(at_hand, number, start.ready)
                                       : start.ready + at_hand.duration;
  finish_op(number, finish);
  stream_free[static_cast<std::size_t>(at_hand.stream)] = finish;
  stream_last[static_cast<std::size_t>(at_hand.stream)] = number;
  // The host reads what the kernel has written.
  if (at_hand.holds_host) host = finish + at_hand.further_launch;
}

double FoldedRank::finish_of_kernel(const FlatOp& kernel, std::uint32_t number, double start) {
  const double finish = device.run_kernel(start, kernel.duration);
  take_ended();
  const Seconds cost(finish - (start + kernel.duration));
  if (cost == Seconds(0)) return finish;
  time.interference += cost;
  busy[static_cast<std::size_t>(Stream::Compute)] += cost.value();
  if (!interference.empty()) interference[number] = cost;
  return finish;
}

bool FoldedRank::resume_host(std::uint32_t number) {
  const double finish = ops[number].finish;
  const auto compute = static_cast<std::size_t>(Stream::Compute);
  if (finish == kUnknownTime || !settle_stream(compute)) return false;
  host = std::max(finish, stream_free[compute]);
  holding = false;
  held_by = number;
  return true;
}

void FoldedRank::finish_op(std::uint32_t number, double finish) {
  ops[number].finish = finish;
  last_finish = std::max(last_finish, finish);
}

void FoldedRank::settle_collective(std::uint32_t number) {
  device.settle(number);
  take_ended();
}

// Settles the collectives that the stream has queued, if something else of the stream comes behind
// them.
void FoldedRank::settle_collectives(Stream stream) {
  if (!device.has_queued(stream)) return;
  device.settle(stream);
  take_ended();
}

void FoldedRank::settle_all() {
  device.settle_all();
  take_ended();
}

void FoldedRank::take_ended() {
  for (const SharedDevice::Ended& ended : device.ended()) {
    const auto stream = static_cast<std::size_t>(ended.stream);
    finish_op(ended.op, ended.finish);
    stream_free[stream] = ended.finish;
    stream_last[stream] = ended.op;
    busy[stream] += ended.delay;
    ops[ended.op].duration += static_cast<float>(ended.delay);
    ops[ended.op].cause = ended.cause;
    if (!interference.empty()) interference[ended.op] = Seconds(ended.delay);
  }
  device.ended().clear();
}

// Takes over the finish of a collective with other stages that the stream waits behind; false if it
// is not known.
bool FoldedRank::settle_stream(std::size_t stream) {
  std::uint32_t& pending = stream_pending[stream];
  if (pending == kNoOp) return true;
  const double finish = ops[pending].finish;
  if (finish == kUnknownTime) return false;
  stream_free[stream] = finish;
  stream_last[stream] = pending;
  pending = kNoOp;
  return true;
}

}  // namespace shardwright::sim
