#include "sim/step/folded_replay.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

#include "core/base/error.hpp"
#include "core/spec/pools.hpp"
#include "sim/step/block_trace.hpp"
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

// A collective of replicas on several pools: how many of these have reached it, and when the last
// one did.
struct ReplicaGathering {
  double ready = 0.0;
  std::size_t arrived = 0;
};

std::size_t count_ops(const Program& program) {
  std::size_t ops = 0;
  for (const RankProgram& stage : program.stages) ops += stage.ops;
  return ops;
}

// The times of all ops of a replay. The next replay of the thread takes their memory over as it is:
// for the system to hand it out anew, or to fill it, takes a large part of a replay.
class TimesOfReplay {
 public:
  explicit TimesOfReplay(std::size_t ops) : times_(std::exchange(spare(), {})) {
    if (times_.size() < ops) times_.resize(ops);
  }
  ~TimesOfReplay() {
    if (times_.capacity() <= kMostSpare) spare() = std::move(times_);
  }
  TimesOfReplay(const TimesOfReplay&) = delete;
  TimesOfReplay& operator=(const TimesOfReplay&) = delete;

  std::span<OpTime> all() { return times_; }

 private:
  // 24 MB.
  static constexpr std::size_t kMostSpare = 1'000'000;

  static std::vector<OpTime>& spare() {
    thread_local std::vector<OpTime> times;
    return times;
  }

  std::vector<OpTime> times_;
};

class Replay {
 public:
  Replay(const Program& program, const Prices& prices, const ReplayOptions& options)
      : program_(program),
        options_(options),
        flat_(flatten(program, prices)),
        traces_(flat_, prices.contention),
        times_(count_ops(program)) {
    const auto stages = program.stages.size();
    ranks_.reserve(stages);
    std::span<OpTime> times = times_.all();
    for (const RankProgram& stage : program.stages) {
      ranks_.emplace_back(times.first(stage.ops), prices.contention, options.keep_finish_times);
      times = times.subspan(stage.ops);
    }
    channels_.resize(2 * stages * stages);
    parts_ = replica_parts(program.plan);
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
      if (may_run_whole(s, rank) && run_whole(rank, call, waits)) {
        moved = true;
        rank.op = ops.size();
      }
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

  // True at the beginning of a call, unless it is one whose first op ends a period.
  bool may_run_whole(std::int32_t s, const Rank& rank) const {
    if (rank.op > 0) return false;
    if (options_.periods.empty()) return true;
    const StagePeriod& period = options_.periods[static_cast<std::size_t>(s)];
    return rank.call != period.first && rank.call != period.end;
  }

  // Replays all ops of a call at once, if nothing outside of its block has a say in them.
  bool run_whole(Rank& rank, const Call& call, std::span<const Wait> waits) {
    if (!traces_.has(call.block)) return false;
    const FlatOp& first = flat_.ops[call.block].front();
    RankStart start;
    if (!rank.find_start(flat_, call, first, waits, start)) return false;
    const bool led = rank.host + first.launch == start.ready;
    const BlockTrace& trace = traces_.of(call.block, led ? HostPlace::AtFirstOp : HostPlace::Ahead);
    return trace.repeat(call, waits, start, rank);
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
        ranks_[static_cast<std::size_t>(s)].record(ops.front(), calls[c].first_op, kNoOp);
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
    rank.record(op, number, kNoOp);
    post_message(s, call, op, {s, number, rank.host});
    return true;
  }

  // Issues one op; false if it depends on something that has not been replayed yet.
  bool issue(std::int32_t s, Rank& rank, const Call& call, const FlatOp& op,
             std::span<const Wait> waits) {
    const std::uint32_t number = call.first_op + static_cast<std::uint32_t>(rank.op);
    if (waits_for_message(op)) return rank.resume_host(number);
    RankStart start;
    if (!rank.find_start(flat_, call, op, waits, start)) return false;
    const double reached = start.ready;
    if (op.rendezvous == Rendezvous::Replicas && !join_replicas(s, rank, op, start)) return false;
    const double issued = rank.issue(op);
    const bool posted = rank.op == 0 && posts_ahead(op) && waits.empty();
    if (posted) {
      rank.ops[number].cause = start.cause;
      return true;
    }
    rank.record(op, number, start.cause);
    if (start.ready == issued) rank.led_by_host = rank.call;
    if (op.rendezvous == Rendezvous::Replicas)
      rank.ops[number].late = static_cast<float>(start.ready - reached);
    if (!stays_on_stage(op.rendezvous)) {
      arrive(s, rank, call, op, number, start.ready);
    } else {
      rank.run(op, number, start);
    }
    return true;
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
      ranks_[static_cast<std::size_t>(each.stage)].finish_op(each.op, finish);
  }

  Channel& channel_of(std::int32_t s, const FlatOp& op) {
    const auto here = static_cast<std::size_t>(s);
    const auto there = static_cast<std::size_t>(std::int64_t{s} + op.peer_offset);
    const std::size_t from = op.sends ? here : there, to = op.sends ? there : here;
    const std::size_t stages = ranks_.size();
    return channels_[((op.gradient ? stages : 0) + from) * stages + to];
  }

  std::size_t stages_of_replica() const { return ranks_.size() / parts_; }

  // The first stage that takes part in a collective of several stages: of the replica, or of the
  // pair that a stage and its mirror image along the pipeline make.
  std::size_t first_of_group(std::int32_t stage, Group group) const {
    const auto place = static_cast<std::size_t>(stage);
    const std::size_t stages = stages_of_replica(), in_replica = place % stages;
    const bool pairs = group == Group::Mirror;
    return place - in_replica + (pairs ? std::min(in_replica, stages - 1 - in_replica) : 0);
  }

  // Puts the start of a collective off until the replicas on all pools have reached it; false if
  // some have not.
  bool join_replicas(std::int32_t s, Rank& rank, const FlatOp& op, RankStart& start) {
    const auto group = static_cast<std::size_t>(op.group);
    const std::size_t stages = stages_of_replica();
    const std::size_t turn = rank.gatherings[group] * stages + static_cast<std::size_t>(s) % stages;
    std::vector<ReplicaGathering>& gatherings = replica_gatherings_[group];
    if (gatherings.size() <= turn) gatherings.resize(turn + 1);
    ReplicaGathering& gathering = gatherings[turn];
    if (!std::exchange(rank.awaits_replicas, true)) {
      gathering.ready = std::max(gathering.ready, start.ready);
      ++gathering.arrived;
    }
    if (gathering.arrived < parts_) return false;
    rank.awaits_replicas = false;
    ++rank.gatherings[group];
    start.ready = gathering.ready;
    return true;
  }

  void join(Rank& rank, const FlatOp& op, const RendezvousEnd& member) {
    const auto group = static_cast<std::size_t>(op.group);
    const std::size_t turn =
        rank.gatherings[group]++ * ranks_.size() + first_of_group(member.stage, op.group);
    std::vector<Gathering>& gatherings = gatherings_[group];
    if (gatherings.size() <= turn) gatherings.resize(turn + 1);
    std::vector<RendezvousEnd>& members = gatherings[turn].members;
    members.push_back(member);
    const std::size_t expected = op.group == Group::ModelParallel ? stages_of_replica() : 2;
    if (members.size() < expected) return;
    double start = 0.0;
    for (const RendezvousEnd& each : members) start = std::max(start, each.ready);
    for (const RendezvousEnd& each : members)
      ranks_[static_cast<std::size_t>(each.stage)].finish_op(each.op, start + op.duration);
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

  // True if the host of a stage goes on as before in further periods of length `shift`: it waits
  // for the device in each, or is ahead of it by more and more.
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

  // The time by which each op of all periods ends later than that of the period before, if it is
  // the same for all.
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
    for (Rank& rank : ranks_) rank.settle_all();
    for (std::size_t s = 0; s < ranks_.size(); ++s) {
      result.step = std::max(result.step, Seconds(ranks_[s].last_finish));
      result.deadlocked = result.deadlocked || ranks_[s].call < program_.stages[s].calls.size();
    }
    for (Rank& rank : ranks_) {
      explain_end(rank.stream_free[static_cast<std::size_t>(Stream::Compute)],
                  std::max(rank.stream_free[static_cast<std::size_t>(Stream::ParameterGather)],
                           rank.stream_free[static_cast<std::size_t>(Stream::GradientReduce)]),
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
    if (!result.deadlocked) result.period = period_times();
    return result;
  }

  const Program& program_;
  const ReplayOptions& options_;
  FlatProgram flat_;
  BlockTraces traces_;
  TimesOfReplay times_;
  std::vector<Rank> ranks_;
  // Channels by the data that they carry, sender and receiver.
  std::vector<Channel> channels_;
  std::array<std::vector<Gathering>, kGroups> gatherings_;
  std::array<std::vector<ReplicaGathering>, kGroups> replica_gatherings_;
  // The number of parts of the replicas that lie on pools of their own.
  std::size_t parts_ = 1;
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
