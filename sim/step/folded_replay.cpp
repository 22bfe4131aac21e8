#include "sim/step/folded_replay.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

#include "core/base/error.hpp"
#include "sim/step/flat_program.hpp"
#include "sim/step/folded_rank.hpp"
#include "sim/step/message_channel.hpp"

namespace shardwright::sim {
namespace {

// A stage's end of a message, or its part in a collective of several stages.
struct RendezvousEnd {
  std::int32_t stage = -1;
  std::uint32_t op = 0;
  double ready = 0.0;
  // Names a message: both ends have the same key.
  std::uint64_t key = 0;
};

// A collective of several stages.
struct Gathering {
  std::vector<RendezvousEnd> members;
};

class Replay {
 public:
  Replay(const Program& program, const Prices& prices, const ReplayOptions& options)
      : program_(program),
        options_(options),
        flat_(flatten(program, prices)),
        ranks_(program.stages.size(), FoldedRank(prices.contention)) {
    for (std::size_t s = 0; s < ranks_.size(); ++s) {
      ranks_[s].ops.resize(program.stages[s].ops);
      if (options.keep_finish_times) ranks_[s].interference.resize(program.stages[s].ops);
    }
    const auto stages = program.stages.size();
    channels_.resize(2 * stages * stages);
  }

  FoldedReplay run() {
    for (std::size_t s = 0; s < ranks_.size(); ++s) post_receives(static_cast<std::int32_t>(s));
    bool moved = true;
    while (moved && !cancelled_) {
      moved = false;
      for (std::size_t s = 0; s < ranks_.size(); ++s)
        moved = advance(static_cast<std::int32_t>(s)) || moved;
    }
    if (!cancelled_) return report();
    FoldedReplay cut_short;
    cut_short.cancelled = true;
    return cut_short;
  }

 private:
  using Rank = FoldedRank;
  using Channel = MessageChannel<RendezvousEnd>;

  const RankProgram& stage(std::int32_t s) const {
    return program_.stages[static_cast<std::size_t>(s)];
  }

  // Replays a stage as far as it gets; true if it got any further.
  bool advance(std::int32_t s) {
    Rank& rank = ranks_[static_cast<std::size_t>(s)];
    const RankProgram& program = stage(s);
    bool moved = false;
    while (rank.call < program.calls.size()) {
      const Call& call = program.calls[rank.call];
      const std::vector<FlatOp>& ops = flat_.ops[call.block];
      const std::span<const Wait> waits = program.waits_of(rank.call);
      for (; rank.op < ops.size(); ++rank.op) {
        if (waits_for_message(ops[rank.op]))
          moved = post_held(s, rank, call, ops[rank.op]) || moved;
        if (!issue(s, rank, call, ops[rank.op], waits)) return moved;
        moved = true;
        if (rank.op == 0 && !options_.periods.empty()) mark_period(s, rank);
      }
      add_busy_of(call.block, rank);
      rank.op = 0;
      ++rank.call;
      if (is_stopped()) return false;
    }
    return moved;
  }

  void mark_period(std::int32_t s, Rank& rank) const {
    const StagePeriod& period = options_.periods[static_cast<std::size_t>(s)];
    if (rank.call == period.first) rank.begin = {rank.time, rank.busy};
    if (rank.call == period.end) rank.end = {rank.time, rank.busy};
  }

  // Asks the stop token every some thousand ops. It is called once a call.
  bool is_stopped() {
    constexpr std::uint32_t kCallsBetweenLooks = 256;
    if (++calls_ % kCallsBetweenLooks == 0) cancelled_ = options_.stop.stop_requested();
    return cancelled_;
  }

  // A receive that waits for nothing is posted when the host reaches it. Where receives do not hold
  // the host, it waits neither for the kernels before them nor for the other stage. So all of them
  // are posted before anything else; otherwise stages whose sends delay their kernels would seem to
  // wait for each other.
  void post_receives(std::int32_t s) {
    const std::vector<Call>& calls = stage(s).calls;
    double host = 0.0;
    for (std::size_t c = 0; c < calls.size(); ++c) {
      const std::vector<FlatOp>& ops = flat_.ops[calls[c].block];
      const bool posts = !ops.empty() && posts_ahead(ops.front()) && stage(s).waits_of(c).empty();
      if (posts) {
        const double ready = host + ops.front().launch;
        post_message(s, calls[c], ops.front(), {s, calls[c].first_op, ready, 0});
        if (!options_.periods.empty())
          ranks_[static_cast<std::size_t>(s)].posted.push_back({calls[c].first_op, ready});
      }
      host += flat_.busy[calls[c].block].launch;
    }
  }

  static bool waits_for_message(const FlatOp& op) {
    return op.holds_host && op.rendezvous == Rendezvous::PointToPoint;
  }

  // Posts a receive that holds the host when the host reaches it; true if it has just done so.
  bool post_held(std::int32_t s, Rank& rank, const Call& call, const FlatOp& op) {
    if (std::exchange(rank.holding, true)) return false;
    const std::uint32_t number = call.first_op + static_cast<std::uint32_t>(rank.op);
    rank.host += op.launch;
    record(rank.ops[number], op, kNoOp);
    post_message(s, call, op, {s, number, rank.host});
    return true;
  }

  // Lets the host go on after the receive; false if its end is not known yet.
  static bool resume_host(Rank& rank, std::uint32_t number) {
    const double finish = rank.ops[number].finish;
    const auto compute = static_cast<std::size_t>(Stream::Compute);
    if (finish == kUnknownTime || !settle_stream(rank, compute)) return false;
    rank.host = std::max(finish, rank.stream_free[compute]);
    rank.holding = false;
    rank.held_by = number;
    return true;
  }

  // Stands for the communication before an op on its stream.
  static constexpr std::uint32_t kStreamBefore = kNoOp - 1;

  struct Start : OpStart {
    // The time from which the op's stream is free.
    double free = 0.0;
    // A collective, not settled yet, that a queued one waits for too.
    std::uint32_t after = kNoOp;
  };

  static bool is_queued(const FlatOp& op) {
    return op.collective && op.rendezvous == Rendezvous::None;
  }

  // Takes an op that has to end first into account; false if its end is not known yet. One
  // collective that another one waits for need not be settled.
  static bool wait_for(Rank& rank, std::uint32_t on, bool queued, Start& start) {
    if (rank.ops[on].finish == kUnknownTime && rank.device.is_queued(on)) {
      if (queued && (start.after == kNoOp || start.after == on)) {
        start.after = on;
        return true;
      }
      settle_collective(rank, on);
    }
    start.OpStart::wait_for(rank.ops[on].finish, on);
    return rank.ops[on].finish != kUnknownTime;
  }

  // Finds when the op may start; false if it depends on something that has not been replayed yet.
  // It writes to `start`, since returning a value copies what has just been written in parts, which
  // costs a third of the replay.
  bool find_start(Rank& rank, const Call& call, const FlatOp& op, std::span<const Wait> waits,
                  Start& start) {
    const auto stream = static_cast<std::size_t>(op.stream);
    const bool queued = is_queued(op);
    if (op.rendezvous != Rendezvous::PointToPoint) {
      if (!queued) settle_collectives(rank, op.stream);
      if (!settle_stream(rank, stream)) return false;
    }
    const double free = op.rendezvous == Rendezvous::PointToPoint ? 0.0 : rank.stream_free[stream];
    start = {OpStart::issued(rank.host + op.launch, free, rank.held_by, kStreamBefore), free};
    for (std::uint32_t i = 0; i < op.waits; ++i) {
      const std::uint32_t on = call.first_op + flat_.waits[op.first_wait + i];
      if (!wait_for(rank, on, queued, start)) return false;
    }
    const std::uint32_t number = call.first_op + static_cast<std::uint32_t>(rank.op);
    for (const Wait& wait : waits) {
      if (wait.op == number && !wait_for(rank, wait.on, queued, start)) return false;
    }
    // The op may have been settled meanwhile.
    if (start.after != kNoOp && rank.ops[start.after].finish != kUnknownTime)
      wait_for(rank, std::exchange(start.after, kNoOp), queued, start);
    // The stream is asked last: settling what the op waits for may have ended others of its stream.
    if (start.cause == kStreamBefore)
      start.cause = op.stream == Stream::Compute ? kNoOp : rank.stream_last[stream];
    return true;
  }

  // Issues one op; false if it depends on something that has not been replayed yet.
  bool issue(std::int32_t s, Rank& rank, const Call& call, const FlatOp& op,
             std::span<const Wait> waits) {
    const std::uint32_t number = call.first_op + static_cast<std::uint32_t>(rank.op);
    if (waits_for_message(op)) return resume_host(rank, number);
    Start start;
    if (!find_start(rank, call, op, waits, start)) return false;
    const double issued = rank.host + op.launch;
    rank.host = issued + op.further_launch;
    if (op.kernel) rank.held_by = kNoOp;
    record(rank.ops[number], op, start.cause);
    const bool posted = rank.op == 0 && posts_ahead(op) && waits.empty();
    if (posted) return true;
    if (start.ready == issued) rank.led_by_host = rank.call;
    if (op.rendezvous != Rendezvous::None) {
      arrive(s, rank, call, op, number, start.ready);
    } else if (is_queued(op)) {
      queue(rank, op, number, start);
    } else {
      run(rank, op, number, start);
    }
    return true;
  }

  static void queue(Rank& rank, const FlatOp& op, std::uint32_t number, const Start& start) {
    rank.device.queue(op.stream, {number, start, start.after, op.duration, op.port});
    take_ended(rank);
    if (!op.holds_host) return;
    settle_collective(rank, number);
    rank.host = rank.ops[number].finish + op.further_launch;
  }

  static void run(Rank& rank, const FlatOp& op, std::uint32_t number, const Start& start) {
    if (op.stream == Stream::Compute)
      explain_gap({start.free, start.ready, start.cause}, rank.ops, rank.time);
    const double finish =
        op.kernel ? finish_of_kernel(rank, op, number, start.ready) : start.ready + op.duration;
    finish_op(rank, number, finish);
    rank.stream_free[static_cast<std::size_t>(op.stream)] = finish;
    rank.stream_last[static_cast<std::size_t>(op.stream)] = number;
    // The host reads what the kernel has written.
    if (op.holds_host) rank.host = finish + op.further_launch;
  }

  static double finish_of_kernel(Rank& rank, const FlatOp& op, std::uint32_t number, double start) {
    const double finish = rank.device.run_kernel(start, op.duration);
    take_ended(rank);
    const Seconds cost(finish - (start + op.duration));
    if (cost == Seconds(0)) return finish;
    rank.time.interference += cost;
    rank.busy[static_cast<std::size_t>(Stream::Compute)] += cost.value();
    if (!rank.interference.empty()) rank.interference[number] = cost;
    return finish;
  }

  static void settle_collective(Rank& rank, std::uint32_t number) {
    rank.device.settle(number);
    take_ended(rank);
  }

  // Settles the collectives that the stream has queued, if something else of the stream comes
  // behind them.
  static void settle_collectives(Rank& rank, Stream stream) {
    if (!rank.device.has_queued(stream)) return;
    rank.device.settle(stream);
    take_ended(rank);
  }

  static void take_ended(Rank& rank) {
    for (const SharedDevice::Ended& ended : rank.device.ended()) {
      const auto stream = static_cast<std::size_t>(ended.stream);
      finish_op(rank, ended.op, ended.finish);
      rank.stream_free[stream] = ended.finish;
      rank.stream_last[stream] = ended.op;
      rank.busy[stream] += ended.delay;
      rank.ops[ended.op].duration += static_cast<float>(ended.delay);
      rank.ops[ended.op].cause = ended.cause;
      if (!rank.interference.empty()) rank.interference[ended.op] = Seconds(ended.delay);
    }
    rank.device.ended().clear();
  }

  // Takes over the finish of a collective with other stages that the stream waits behind; false if
  // it is not known.
  static bool settle_stream(Rank& rank, std::size_t stream) {
    std::uint32_t& pending = rank.stream_pending[stream];
    if (pending == kNoOp) return true;
    const double finish = rank.ops[pending].finish;
    if (finish == kUnknownTime) return false;
    rank.stream_free[stream] = finish;
    rank.stream_last[stream] = pending;
    pending = kNoOp;
    return true;
  }

  static void record(OpTime& time, const FlatOp& op, std::uint32_t cause) {
    time.duration = static_cast<float>(op.duration);
    time.describe(op, cause);
  }

  static void finish_op(Rank& rank, std::uint32_t number, double finish) {
    rank.ops[number].finish = finish;
    rank.last_finish = std::max(rank.last_finish, finish);
  }

  void arrive(std::int32_t s, Rank& rank, const Call& call, const FlatOp& op, std::uint32_t number,
              double ready) {
    if (op.rendezvous == Rendezvous::PointToPoint) {
      post_message(s, call, op, {s, number, ready});
      return;
    }
    rank.stream_pending[static_cast<std::size_t>(op.stream)] = number;
    join(rank, op, {s, number, ready});
  }

  void post_message(std::int32_t s, const Call& call, const FlatOp& op, RendezvousEnd end) {
    end.key = message_key(call, op);
    Channel& channel = channel_of(s, op);
    const auto other = channel.post(op.sends, end);
    if (!other) return;
    SHARDWRIGHT_CHECK(other->key == end.key, "two stages exchange messages in different orders");
    const double finish = channel.start_at(std::max(end.ready, other->ready)) + op.duration;
    channel.finish(finish);
    for (const RendezvousEnd& each : {end, *other})
      finish_op(ranks_[static_cast<std::size_t>(each.stage)], each.op, finish);
  }

  Channel& channel_of(std::int32_t s, const FlatOp& op) {
    const auto here = static_cast<std::size_t>(s);
    const auto there = static_cast<std::size_t>(std::int64_t{s} + op.peer_offset);
    const std::size_t from = op.sends ? here : there, to = op.sends ? there : here;
    const std::size_t stages = ranks_.size();
    return channels_[((op.gradient ? stages : 0) + from) * stages + to];
  }

  // The number of the pair that a stage and its mirror image along the pipeline make.
  std::size_t mirror_pair(std::int32_t stage) const {
    const auto place = static_cast<std::size_t>(stage);
    return std::min(place, ranks_.size() - 1 - place);
  }

  void join(Rank& rank, const FlatOp& op, const RendezvousEnd& member) {
    const auto group = static_cast<std::size_t>(op.group);
    std::size_t turn = rank.gatherings[group]++;
    if (op.group == Group::Mirror) turn = turn * ranks_.size() + mirror_pair(member.stage);
    std::vector<Gathering>& gatherings = gatherings_[group];
    if (gatherings.size() <= turn) gatherings.resize(turn + 1);
    std::vector<RendezvousEnd>& members = gatherings[turn].members;
    members.push_back(member);
    const std::size_t expected = op.group == Group::ModelParallel ? ranks_.size() : 2;
    if (members.size() < expected) return;
    double start = 0.0;
    for (const RendezvousEnd& each : members) start = std::max(start, each.ready);
    for (const RendezvousEnd& each : members) {
      finish_op(ranks_[static_cast<std::size_t>(each.stage)], each.op, start + op.duration);
    }
  }

  void add_busy_of(BlockId block, Rank& rank) const {
    const BlockBusy& busy = flat_.busy[block];
    rank.time.gemm += Seconds(busy.gemm);
    rank.time.attention += Seconds(busy.attention);
    rank.time.memory_bound += Seconds(busy.memory_bound);
    rank.time.optimizer += Seconds(busy.optimizer);
    rank.time.offload += Seconds(busy.offloaded);
    rank.time.recompute += Seconds(busy.recompute);
    for (std::size_t i = 0; i < rank.busy.size(); ++i) rank.busy[i] += busy.stream[i];
  }

  // The number of a call's first op.
  std::uint32_t first_op(std::size_t s, std::size_t call) const {
    return program_.stages[s].calls[call].first_op;
  }

  // True if the host of a stage goes on as before in further periods of length `shift`: it waits for
  // the device in each, or is ahead of it by more and more.
  bool host_keeps_up(std::size_t s, double shift) const {
    const Rank& rank = ranks_[s];
    const StagePeriod& period = options_.periods[s];
    double launch = 0.0;
    bool holds = false;
    for (std::size_t c = period.first; c < period.end; ++c) {
      const BlockId block = program_.stages[s].calls[c].block;
      launch += flat_.busy[block].launch;
      holds = holds || std::any_of(flat_.ops[block].begin(), flat_.ops[block].end(),
                                   [](const FlatOp& op) { return op.holds_host; });
    }
    if (holds) return true;
    const std::uint32_t begin = first_op(s, period.begin());
    const bool led_by_device =
        std::all_of(rank.posted.begin(), rank.posted.end(), [&](const PostedReceive& receive) {
          const OpTime& op = rank.ops[receive.op];
          return receive.op < begin || op.finish - static_cast<double>(op.duration) > receive.host;
        });
    return launch <= shift && rank.led_by_host < period.begin() && led_by_device;
  }

  // The time by which each op of all periods ends later than that of the period before, if it is the
  // same for all.
  std::optional<double> period_shift() const {
    constexpr double kAlike = 1e-10;
    std::optional<double> shift;
    for (std::size_t s = 0; s < ranks_.size(); ++s) {
      const StagePeriod& period = options_.periods[s];
      const std::uint32_t end = first_op(s, period.end);
      const std::uint32_t ops = end - first_op(s, period.first);
      for (std::uint32_t op = first_op(s, period.begin()) + ops; op < end; ++op) {
        const double later = ranks_[s].ops[op].finish - ranks_[s].ops[op - ops].finish;
        if (!shift) shift = later;
        if (!(std::abs(later - *shift) <= kAlike * *shift)) return std::nullopt;
      }
    }
    for (std::size_t s = 0; s < ranks_.size(); ++s) {
      if (!shift || !host_keeps_up(s, *shift)) return std::nullopt;
    }
    return shift;
  }

  std::optional<PeriodTimes> period_times() const {
    if (options_.periods.empty()) return std::nullopt;
    const std::optional<double> shift = period_shift();
    if (!shift) return std::nullopt;
    PeriodTimes period;
    period.step = Seconds(*shift);
    for (const Rank& rank : ranks_) {
      TimeBreakdown& time = period.time.emplace_back(rank.end.time);
      time.add(rank.begin.time, -1.0);
      std::array<Seconds, kStreams>& busy = period.busy.emplace_back();
      for (std::size_t i = 0; i < busy.size(); ++i)
        busy[i] = Seconds(rank.end.busy[i] - rank.begin.busy[i]);
    }
    return period;
  }

  FoldedReplay report() {
    FoldedReplay result;
    for (Rank& rank : ranks_) {
      rank.device.settle_all();
      take_ended(rank);
    }
    for (std::size_t s = 0; s < ranks_.size(); ++s) {
      result.step = std::max(result.step, Seconds(ranks_[s].last_finish));
      result.deadlocked = result.deadlocked || ranks_[s].call < program_.stages[s].calls.size();
    }
    for (Rank& rank : ranks_) {
      explain_end(rank.stream_free[static_cast<std::size_t>(Stream::Compute)],
                  rank.stream_free[static_cast<std::size_t>(Stream::ParameterGather)],
                  result.step.value(), rank.time);
      result.time.push_back(rank.time);
      std::array<Seconds, kStreams>& busy = result.busy.emplace_back();
      for (std::size_t i = 0; i < busy.size(); ++i) busy[i] = Seconds(rank.busy[i]);
      if (!options_.keep_finish_times) continue;
      FinishTimes& finish = result.finish.emplace_back();
      finish.reserve(rank.ops.size());
      for (const OpTime& op : rank.ops) finish.push_back(Seconds(op.finish));
      result.interference.push_back(std::move(rank.interference));
    }
    result.period = period_times();
    return result;
  }

  const Program& program_;
  const ReplayOptions& options_;
  FlatProgram flat_;
  std::vector<Rank> ranks_;
  // Channels by the data that they carry, sender and receiver.
  std::vector<Channel> channels_;
  std::array<std::vector<Gathering>, kGroups> gatherings_;
  // Calls replayed so far, of all stages.
  std::uint32_t calls_ = 0;
  bool cancelled_ = false;
};

}  // namespace

FoldedReplay replay_folded(const Program& program, const Prices& prices,
                           const ReplayOptions& options) {
  return Replay(program, prices, options).run();
}

}  // namespace shardwright::sim
