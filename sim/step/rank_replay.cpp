#include "sim/step/rank_replay.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "core/base/error.hpp"
#include "core/program/rank_grid.hpp"
#include "sim/step/rank_state.hpp"
#include "sim/step/rank_watch.hpp"

namespace shardwright::sim {
namespace {

// Ranks that go on between two looks at the stop token.
constexpr std::uint64_t kRunsBetweenLooks = 4096;

// Owners of shared transfers: a row of collectives, or (this) the messages.
constexpr std::uint32_t kMessages = kNone;

}  // namespace

class RankReplay::Engine {
 public:
  Engine(const Program& program, const ClusterSpec& cluster, const Prices& prices,
         const FoldedReplay& alike, const FullOptions& options, JobLinks links)
      : program_(program),
        options_(options),
        flat_(flatten(program, prices)),
        lane_programs_(sort_into_lanes(program, flat_)),
        grid_(program.plan),
        transfers_(program.plan, cluster, lane_programs_.transfers, std::move(links),
                   options.contention, !options.slow_nics.empty()) {
    set_up_interference(alike);
    set_up_gatherings();
    set_up_channel_ends();
  }

  void begin(double start) {
    start_ = start;
    done_ops_ = all_ops_ = 0;
    set_up_ranks();
    channels_.assign(lane_programs_.channels * static_cast<std::size_t>(grid_.largest_stage()), {});
    watches_.clear();
    for (const std::int64_t rank : options_.watched_ranks) watch(static_cast<std::size_t>(rank));
    for (std::size_t rank = ranks_.size(); rank-- > 0;) {
      ranks_[rank].runnable = all_lanes(ranks_[rank].stage);
      enqueue(static_cast<std::uint32_t>(rank));
    }
  }

  void add_moved(std::vector<double>& bytes_by_link) const { transfers_.add_moved(bytes_by_link); }

  bool is_over() const { return done_ops_ == all_ops_ && under_way_ == 0; }

  bool go_on() {
    while (!work_.empty()) {
      if (++runs_ % kRunsBetweenLooks == 0 && !look_around()) return false;
      const std::uint32_t rank = work_.back();
      work_.pop_back();
      while (ranks_[rank].runnable != 0) {
        const int lane = std::countr_zero(ranks_[rank].runnable);
        ranks_[rank].runnable &= ranks_[rank].runnable - 1;
        run_lane(rank, static_cast<std::uint32_t>(lane));
      }
      ranks_[rank].queued = false;
    }
    return true;
  }

  void finish_transfer(const SharedTransfers::Finished& finished) {
    --under_way_;
    const auto [kind, instance, job] = finished.owner;
    const double duration = finished.time - finished.start;
    if (kind != kMessages) return finish_collective(kind, instance, duration);
    std::vector<RankChannel::Queued>& waiting = channels_[instance].waiting;
    waiting.erase(waiting.begin());
    finish_message(instance, finished.start - start_, duration, finished.time - start_);
    if (!waiting.empty()) begin_message(instance);
  }

  double end() const { return start_ + step().value(); }

  FullReplay report() {
    FullReplay result;
    result.step = step();
    for (const RankState& rank : ranks_) result.ranks.push_back(rank.use);
    const auto slowest = std::max_element(
        result.ranks.begin(), result.ranks.end(),
        [](const RankUse& a, const RankUse& b) { return a.compute() < b.compute(); });
    result.slowest = slowest - result.ranks.begin();
    for (const std::int64_t rank : options_.watched_ranks) {
      const RankWatch* watch = watch_of(ranks_[static_cast<std::size_t>(rank)]);
      result.watched.push_back({rank, watch->breakdown(result.step.value()), watch->op_times()});
    }
    result.ops = done_ops_;
    result.cancelled = cancelled_;
    result.deadlocked = is_deadlocked();
    return result;
  }

 private:
  const LaneProgram& lanes_of(std::uint32_t stage) const { return lane_programs_.stages[stage]; }
  LaneMask all_lanes(std::uint32_t stage) const {
    const std::size_t lanes = lanes_of(stage).lanes.size();
    return static_cast<LaneMask>((std::uint64_t{1} << lanes) - 1);
  }

  // Takes interference from a step of ranks that are all alike: the same ops run beside each other
  // on one accelerator.
  void set_up_interference(const FoldedReplay& alike) {
    for (std::size_t stage = 0; stage < alike.interference.size(); ++stage) {
      for (Lane& lane : lane_programs_.stages[stage].lanes) {
        for (LaneOp& op : lane.ops) op.interference = alike.interference[stage][op.number].value();
      }
    }
  }

  void set_up_ranks() {
    const auto world = static_cast<std::size_t>(grid_.world_size());
    ranks_.assign(world, {});
    holds_.clear();
    std::size_t slots = 0, lanes = 0;
    for (std::size_t i = 0; i < world; ++i) {
      RankState& rank = ranks_[i];
      const StageRank place = grid_.locate(static_cast<std::int64_t>(i));
      rank.stage = static_cast<std::uint32_t>(place.stage);
      rank.index = static_cast<std::uint32_t>(place.index);
      rank.first_lane = static_cast<std::uint32_t>(lanes);
      rank.first_slot = slots;
      rank.first_hold = holds_.size();
      for (const std::uint32_t ops : lanes_of(rank.stage).holds) holds_.push_back({0.0, ops});
      rank.factor = rank_factor(options_.variation, static_cast<std::uint32_t>(i));
      lanes += lanes_of(rank.stage).lanes.size();
      slots += lanes_of(rank.stage).slots;
      all_ops_ += lanes_of(rank.stage).ops;
    }
    lanes_.assign(lanes, {});
    finish_.assign(slots, kUnknownTime);
  }

  void set_up_gatherings() {
    std::vector<std::int32_t> table_of(kGroups, -1);
    for (const RendezvousKind& kind : lane_programs_.rendezvous) {
      std::int32_t& table = table_of[static_cast<std::size_t>(kind.group)];
      if (table < 0) {
        table = static_cast<std::int32_t>(tables_.size());
        tables_.push_back(grid_.table(kind.group));
      }
      Gatherings& row = gatherings_.emplace_back();
      row.table = static_cast<std::size_t>(table);
      row.open.resize(tables_[row.table].groups());
      for (const LaneProgram& stage : lane_programs_.stages)
        row.lane_of_stage.push_back(lane_of_stream(stage, kind.stream));
    }
  }

  static std::int32_t lane_of_stream(const LaneProgram& stage, Stream stream) {
    for (std::size_t lane = 0; lane < stage.lanes.size(); ++lane) {
      if (stage.lanes[lane].stream == stream && !stage.lanes[lane].is_message)
        return static_cast<std::int32_t>(lane);
    }
    return -1;
  }

  void set_up_channel_ends() {
    channel_ends_.resize(lane_programs_.channels);
    for (std::uint32_t stage = 0; stage < lane_programs_.stages.size(); ++stage) {
      const std::vector<Lane>& lanes = lanes_of(stage).lanes;
      for (std::uint32_t l = 0; l < lanes.size(); ++l) {
        if (!lanes[l].is_message) continue;
        auto& ends = channel_ends_[lanes[l].channel];
        (lanes[l].sends ? ends.first : ends.second) = {stage, l};
      }
    }
  }

  void watch(std::size_t rank) {
    if (ranks_[rank].watch >= 0) return;
    ranks_[rank].watch = static_cast<std::int32_t>(watches_.size());
    watches_.emplace_back(program_, flat_, lanes_of(ranks_[rank].stage));
  }

  RankWatch* watch_of(const RankState& rank) {
    return rank.watch < 0 ? nullptr : &watches_[static_cast<std::size_t>(rank.watch)];
  }

  void enqueue(std::uint32_t rank) {
    if (std::exchange(ranks_[rank].queued, true)) return;
    work_.push_back(rank);
  }

  bool look_around() {
    if (options_.progress)
      options_.progress(static_cast<double>(done_ops_) / static_cast<double>(all_ops_));
    cancelled_ = options_.stop.stop_requested();
    return !cancelled_;
  }

  void run_lane(std::uint32_t r, std::uint32_t l) {
    RankState& rank = ranks_[r];
    const Lane& lane = lanes_of(rank.stage).lanes[l];
    LaneState& state = lanes_[rank.first_lane + l];
    while (!state.in_collective && state.cursor < lane.ops.size()) {
      const LaneOp& op = lane.ops[state.cursor];
      const auto arrival = arrival_at(rank, lane, state, op);
      if (!arrival) return;
      ++state.cursor;
      ++done_ops_;
      if (RankWatch* watch = watch_of(rank)) watch->arrive(op, *arrival);
      if (lane.is_message) {
        post(rank, lane, op, arrival->ready);
      } else if (op.rendezvous != kNone) {
        state.in_collective = true;
        join(r, op, arrival->ready);
      } else {
        compute(r, state, op, *arrival);
      }
    }
  }

  // Returns nothing if the op waits for something that has not happened yet.
  std::optional<OpStart> arrival_at(const RankState& rank, const Lane& lane, const LaneState& state,
                                    const LaneOp& op) const {
    const auto host = issued_at(rank, op);
    if (!host) return std::nullopt;
    const bool follows = !lane.is_message && op.stream != Stream::Compute && state.cursor > 0;
    OpStart arrival = OpStart::issued(*host, lane.is_message ? 0.0 : state.free, op.held_by,
                                      follows ? lane.ops[state.cursor - 1].number : kNoOp);
    const LaneWait* waits = lanes_of(rank.stage).waits.data() + op.first_wait;
    for (std::uint32_t i = 0; i < op.waits; ++i) {
      const double finish = finish_[rank.first_slot + waits[i].slot];
      if (finish == kUnknownTime) return std::nullopt;
      arrival.wait_for(finish, waits[i].op);
    }
    return arrival;
  }

  // Returns when the host has issued the op, or nothing while it waits before it.
  std::optional<double> issued_at(const RankState& rank, const LaneOp& op) const {
    if (op.hold == kNone) return op.host;
    const Hold& hold = holds_[rank.first_hold + op.hold];
    if (hold.missing > 0) return std::nullopt;
    return hold.end + op.host;
  }

  void compute(std::uint32_t r, LaneState& state, const LaneOp& op, const OpStart& arrival) {
    RankState& rank = ranks_[r];
    double factor = 1.0;
    if (op.computes) factor = rank.factor * op_factor(options_.variation, r, op.number);
    const double duration = (op.duration + op.interference) * factor;
    if (RankWatch* watch = watch_of(rank)) watch->compute(op, arrival, state.free, factor);
    state.free = arrival.ready + duration;
    finish_op(rank, op, state.free, duration);
  }

  void finish_op(RankState& rank, const LaneOp& op, double time, double duration) {
    rank.use.busy[static_cast<std::size_t>(op.stream)] += Seconds(duration);
    rank.use.finish = std::max(rank.use.finish, Seconds(time));
    rank.runnable |= op.wakes;
    if (op.slot != kNone) finish_[rank.first_slot + op.slot] = time;
    if (op.ends == kNone) return;
    Hold& hold = holds_[rank.first_hold + op.ends];
    hold.end = std::max(hold.end, time);
    if (--hold.missing == 0) rank.runnable = all_lanes(rank.stage);
  }

  // Transfers that may share links. Their times there count from the beginning of all jobs, others
  // from that of the step.

  void begin_transfer(TransferOwner owner, SharedTransfers::RouteId route, double start,
                      double duration) {
    ++under_way_;
    transfers_.shared().begin(owner, route, start_ + start, duration);
  }

  // Collectives.

  void join(std::uint32_t r, const LaneOp& op, double ready) {
    Gatherings& row = gatherings_[op.rendezvous];
    const GroupTable& table = tables_[row.table];
    const std::uint32_t group = table.group_of[r];
    RankGathering& gathering = row.open[group];
    gathering.start = std::max(gathering.start, ready);
    const auto members = table.members_of(group);
    if (++gathering.arrived < members.size()) return;
    const double start = gathering.start;
    gathering.interference = op.interference;
    const auto known = transfers_.of(op.transfer, group, members);
    const double duration = known.duration + op.interference;
    if (known.route) {
      begin_transfer({op.rendezvous, group, transfers_.job()}, *known.route, start, duration);
    } else {
      finish_collective(op.rendezvous, group, duration);
    }
  }

  void finish_collective(std::uint32_t rendezvous, std::uint32_t group, double duration) {
    Gatherings& row = gatherings_[rendezvous];
    const RankGathering done = std::exchange(row.open[group], {});
    const double start = done.start;
    for (const std::int32_t member : tables_[row.table].members_of(group)) {
      const auto r = static_cast<std::uint32_t>(member);
      RankState& rank = ranks_[r];
      const auto lane = static_cast<std::uint32_t>(row.lane_of_stage[rank.stage]);
      LaneState& state = lanes_[rank.first_lane + lane];
      const LaneOp& op = lanes_of(rank.stage).lanes[lane].ops[state.cursor - 1];
      state.in_collective = false;
      // Kernels beside it delay it on one pool more than on another.
      const double own = duration + (op.interference - done.interference);
      state.free = start + own;
      rank.runnable |= LaneMask{1} << lane;
      if (RankWatch* watch = watch_of(rank)) watch->communicate(op, start, own);
      finish_op(rank, op, state.free, own);
      enqueue(r);
    }
  }

  // Messages.

  std::uint32_t rank_of(const ChannelEnd& end, std::uint32_t index) const {
    return static_cast<std::uint32_t>(grid_.rank_at({end.stage, index}));
  }

  void post(const RankState& rank, const Lane& lane, const LaneOp& op, double ready) {
    const auto id = static_cast<std::uint32_t>(
        lane.channel * static_cast<std::size_t>(grid_.largest_stage()) + rank.index);
    RankChannel& channel = channels_[id];
    const auto other = channel.post(lane.sends, ready);
    if (!other) return;
    const double both = std::max(ready, *other);
    const auto& ends = channel_ends_[lane.channel];
    const std::int32_t members[] = {static_cast<std::int32_t>(rank_of(ends.first, rank.index)),
                                    static_cast<std::int32_t>(rank_of(ends.second, rank.index))};
    const auto known = transfers_.of(op.transfer, id, members);
    if (!known.route) {
      const double start = channel.start_at(both);
      finish_message(id, start, known.duration, start + known.duration);
      return;
    }
    channel.waiting.push_back({both, *known.route, known.duration});
    if (channel.waiting.size() == 1) begin_message(id);
  }

  void begin_message(std::uint32_t id) {
    const RankChannel::Queued& message = channels_[id].waiting.front();
    begin_transfer({kMessages, id, transfers_.job()}, message.route,
                   channels_[id].start_at(message.ready), message.duration);
  }

  void finish_message(std::uint32_t id, double start, double duration, double through) {
    const auto stage_size = static_cast<std::size_t>(grid_.largest_stage());
    const auto index = static_cast<std::uint32_t>(id % stage_size);
    const auto& ends = channel_ends_[id / stage_size];
    channels_[id].finish(through);
    const std::uint32_t number = channels_[id].passed++;
    for (const ChannelEnd& end : {ends.first, ends.second}) {
      const std::uint32_t r = rank_of(end, index);
      RankState& rank = ranks_[r];
      const LaneOp& op = lanes_of(end.stage).lanes[end.lane].ops[number];
      if (RankWatch* watch = watch_of(rank)) watch->communicate(op, start, duration);
      finish_op(rank, op, start + duration, duration);
      enqueue(r);
    }
  }

  Seconds step() const {
    Seconds finish;
    for (const RankState& rank : ranks_) finish = std::max(finish, rank.use.finish);
    return finish;
  }

  bool is_deadlocked() const {
    if (cancelled_) return false;
    return done_ops_ < all_ops_ ||
           std::any_of(lanes_.begin(), lanes_.end(),
                       [](const LaneState& state) { return state.in_collective; });
  }

  const Program& program_;
  const FullOptions& options_;
  FlatProgram flat_;
  LanePrograms lane_programs_;
  RankGrid grid_;
  TransferTimes transfers_;
  std::vector<RankState> ranks_;
  // The lanes of all ranks.
  std::vector<LaneState> lanes_;
  // The finish times of the ops that other lanes wait for, of all ranks.
  std::vector<double> finish_;
  // The holds of the hosts of all ranks.
  std::vector<Hold> holds_;
  std::vector<GroupTable> tables_;
  // The gatherings of each RendezvousKind.
  std::vector<Gatherings> gatherings_;
  // The sender and the receiver of each pair of stages.
  std::vector<std::pair<ChannelEnd, ChannelEnd>> channel_ends_;
  // The channels of each rank of a stage, by pair of stages.
  std::vector<RankChannel> channels_;
  std::vector<RankWatch> watches_;
  // Ranks with runnable lanes, last in first out.
  std::vector<std::uint32_t> work_;
  std::uint64_t runs_ = 0, done_ops_ = 0, all_ops_ = 0;
  // The beginning of the step.
  double start_ = 0.0;
  // Transfers that share links and have not ended.
  std::uint64_t under_way_ = 0;
  bool cancelled_ = false;
};

RankReplay::RankReplay(const Program& program, const ClusterSpec& cluster, const Prices& prices,
                       const FoldedReplay& alike, const FullOptions& options, JobLinks links)
    : engine_(
          std::make_unique<Engine>(program, cluster, prices, alike, options, std::move(links))) {}
RankReplay::RankReplay(RankReplay&&) noexcept = default;
RankReplay::~RankReplay() = default;

void RankReplay::begin(double start) {
  engine_->begin(start);
}

bool RankReplay::go_on() {
  return engine_->go_on();
}

void RankReplay::finish_transfer(const SharedTransfers::Finished& finished) {
  engine_->finish_transfer(finished);
}

bool RankReplay::is_over() const {
  return engine_->is_over();
}

double RankReplay::end() const {
  return engine_->end();
}

FullReplay RankReplay::report() {
  return engine_->report();
}

void RankReplay::add_moved(std::vector<double>& bytes_by_link) const {
  engine_->add_moved(bytes_by_link);
}

}  // namespace shardwright::sim
