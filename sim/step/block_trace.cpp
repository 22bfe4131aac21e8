#include "sim/step/block_trace.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace shardwright::sim {
namespace {

constexpr double kLongBefore = -std::numeric_limits<double>::infinity();
constexpr auto kCompute = static_cast<std::size_t>(Stream::Compute);

// True if each op but the first waits for an op of the block, on its stream or another one.
bool follows_first_op(const std::vector<FlatOp>& ops) {
  std::array<bool, kStreams> used{};
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const FlatOp& op = ops[i];
    if (op.rendezvous != Rendezvous::None || op.holds_host) return false;
    const bool was_used = std::exchange(used[static_cast<std::size_t>(op.stream)], true);
    if (i > 0 && !was_used && op.waits == 0) return false;
  }
  return ops.size() > 1;
}

}  // namespace

BlockTrace::BlockTrace(const FlatProgram& flat, BlockId block, HostPlace host,
                       const Contention& contention)
    : host_(host),
      times_(flat.ops[block].size()),
      end_(times_, contention, true),
      lead_(kLongBefore) {
  const std::vector<FlatOp>& ops = flat.ops[block];
  end_.host = host == HostPlace::Ahead ? kLongBefore : -ops.front().launch;
  Call call;
  call.block = block;
  for (std::uint32_t i = 0; i < ops.size(); ++i) run(flat, call, ops[i], i);
  first_goes_on_ = end_.device.is_queued(0);
  for (const StepPart part : enumerators<StepPart>()) {
    if (end_.time.of(part) != Seconds(0)) parts_.emplace_back(part, end_.time.of(part));
  }
  std::sort(streams_.begin(), streams_.end());
  streams_.erase(std::unique(streams_.begin(), streams_.end()), streams_.end());
}

void BlockTrace::run(const FlatProgram& flat, const Call& call, const FlatOp& op,
                     std::uint32_t number) {
  end_.op = number;
  RankStart start;
  end_.find_start(flat, call, op, {}, start);
  if (number > 0) lead_ = std::max(lead_, launch_ + op.launch - start.ready);
  launch_ += op.launch + op.further_launch;
  const double issued = end_.issue(op);
  end_.record(op, number, start.cause);
  if (number > 0 && first_kernel_ == kNoOp && start.ready == issued) led_by_host_.push_back(number);
  const TimeBreakdown before = end_.time;
  end_.run(op, number, start);
  streams_.push_back(static_cast<std::size_t>(op.stream));
  if (op.stream != Stream::Compute || first_kernel_ != kNoOp) return;
  first_kernel_ = number;
  kernel_start_ = start.ready;
  const Seconds interference = end_.time.interference;
  end_.time = before;
  end_.time.interference = interference;
}

bool BlockTrace::repeat(const Call& call, std::span<const Wait> waits, const RankStart& start,
                        FoldedRank& rank) const {
  if (start.after != kNoOp || !is_alone(waits, start.ready, rank)) return false;
  const double free = rank.stream_free[kCompute];
  repeat_ops(call, start, rank);
  if (first_kernel_ != kNoOp) {
    const std::uint32_t cause = rank.ops[call.first_op + first_kernel_].cause;
    explain_gap({free, start.ready + kernel_start_, cause}, rank.ops, rank.time);
    rank.held_by = kNoOp;
  }
  repeat_sums(call, start.ready, rank);
  rank.device.go_on_as(end_.device, start.ready, call.first_op);
  return true;
}

// True if all that an op of the block waits for outside of it has ended before `start`, and the
// host issues each of its ops as in the trace.
bool BlockTrace::is_alone(std::span<const Wait> waits, double start, const FoldedRank& rank) const {
  if (first_goes_on_ || !rank.device.is_idle(start)) return false;
  if (host_ == HostPlace::Ahead && rank.host + lead_ >= start) return false;
  const bool streams_are_free =
      std::all_of(streams_.begin(), streams_.end(), [&](std::size_t stream) {
        return rank.stream_pending[stream] == kNoOp && rank.stream_free[stream] <= start;
      });
  return streams_are_free && std::all_of(waits.begin(), waits.end(), [&](const Wait& wait) {
           return rank.ops[wait.on].finish <= start;
         });
}

void BlockTrace::repeat_ops(const Call& call, const RankStart& start, FoldedRank& rank) const {
  for (std::size_t i = 0; i < times_.size(); ++i) {
    OpTime& op = rank.ops[call.first_op + i];
    op = times_[i];
    op.finish += start.ready;
    if (op.cause != kNoOp) op.cause += call.first_op;
  }
  rank.ops[call.first_op].cause = start.cause;
  for (const std::uint32_t op : led_by_host_) rank.ops[call.first_op + op].cause = rank.held_by;
  if (rank.interference.empty()) return;
  std::copy(end_.interference.begin(), end_.interference.end(),
            rank.interference.begin() + static_cast<std::ptrdiff_t>(call.first_op));
}

void BlockTrace::repeat_sums(const Call& call, double start, FoldedRank& rank) const {
  if (host_ == HostPlace::AtFirstOp) {
    rank.led_by_host = rank.call;
    rank.host = start + end_.host;
  } else {
    rank.host += launch_;
  }
  for (const auto& [part, time] : parts_) rank.time.of(part) += time;
  rank.last_finish = std::max(rank.last_finish, start + end_.last_finish);
  for (const std::size_t stream : streams_) {
    rank.busy[stream] += end_.busy[stream];
    if (end_.stream_last[stream] == kNoOp) continue;
    rank.stream_free[stream] = start + end_.stream_free[stream];
    rank.stream_last[stream] = call.first_op + end_.stream_last[stream];
  }
}

BlockTraces::BlockTraces(const FlatProgram& flat, const Contention& contention)
    : flat_(flat), contention_(contention), known_(flat.ops.size()) {
  for (std::size_t block = 0; block < known_.size(); ++block)
    known_[block].is_traced = follows_first_op(flat.ops[block]);
}

const BlockTrace& BlockTraces::of(BlockId block, HostPlace host) {
  auto& trace = known_[block].traces[static_cast<std::size_t>(host)];
  if (!trace) trace = std::make_unique<const BlockTrace>(flat_, block, host, contention_);
  return *trace;
}

}  // namespace shardwright::sim
