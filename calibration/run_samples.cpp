#include "calibration/run_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "calibration/pool_exchanges.hpp"
#include "core/base/error.hpp"
#include "core/lowering/lowering.hpp"
#include "core/program/program_checks.hpp"
#include "core/program/rank_grid.hpp"
#include "core/spec/pools.hpp"
#include "core/timeline/timeline_file.hpp"

namespace shardwright::calibration {
namespace {

// A stage's op with what it waits for.
struct StageOp {
  const Op* op = nullptr;
  const Call* call = nullptr;
  std::size_t queue = 0;
  // Numbers of ops.
  std::vector<std::uint32_t> waits;
};

using StageOps = std::vector<StageOp>;

StageOps ops_of(const Program& program, const RankProgram& stage, const Queues& queues) {
  StageOps ops;
  for_each_op(program, stage, [&](const PlacedOp& placed) {
    StageOp& each = ops.emplace_back();
    each.op = &placed.op;
    each.call = &placed.call;
    each.queue = queues.of(placed.op);
    for (const std::uint16_t on : placed.op.waits) each.waits.push_back(placed.call.first_op + on);
    for (const Wait& wait : placed.waits) each.waits.push_back(wait.on);
  });
  return ops;
}

// The shortest time in seconds that a sample has, since fits take its logarithm.
constexpr double kLeast = 1e-7;

// An op of a rank in a measured step; seconds on the step's common clock.
struct OpTime {
  double ready = 0.0, start = 0.0, end = 0.0;
};

struct BusySpan {
  double start, end;
};

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double middle_mean(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto quarter = static_cast<std::ptrdiff_t>(values.size() / 4);
  return mean({values.begin() + quarter, values.end() - quarter});
}

bool is_message(OpKind kind) {
  return kind == OpKind::Send || kind == OpKind::Receive;
}

// Times of the ops of one step on every rank.
class StepMatch {
 public:
  StepMatch(const MeasuredRun& run, const MeasuredStep& step, const RankGrid& grid,
            const std::vector<StageOps>& stages, std::size_t queues)
      : run_(run), step_(step), grid_(grid), stages_(stages), queues_(queues) {
    origin_ = step.ranks.front().ranks.front().clock.value();
    for (const Timeline& timeline : step.ranks)
      origin_ = std::min(origin_, timeline.ranks.front().clock.value());
    for (std::size_t rank = 0; rank < step.ranks.size(); ++rank)
      times.push_back(match(static_cast<std::int64_t>(rank)));
  }

  // Times by rank and op number.
  std::vector<std::vector<OpTime>> times;

 private:
  // Stream and peer.
  using SpanKey = std::tuple<Stream, std::int32_t>;

  // Spans of each stream, in the order of their starts.
  static std::map<SpanKey, std::vector<const Span*>> sorted_spans(const Timeline& timeline) {
    std::map<SpanKey, std::vector<const Span*>> spans;
    for (const Span& span : timeline.spans) spans[{span.stream, span.peer}].push_back(&span);
    for (auto& [key, list] : spans) {
      std::stable_sort(list.begin(), list.end(),
                       [](const Span* a, const Span* b) { return a->start < b->start; });
    }
    return spans;
  }

  std::int32_t peer_of(const Op& op, StageRank place) const {
    const auto* work = std::get_if<CommunicationWork>(&op.work);
    if (work == nullptr || !is_message(op.kind)) return -1;
    return static_cast<std::int32_t>(grid_.rank_at({place.stage + work->peer_offset, place.index}));
  }

  std::vector<OpTime> match(std::int64_t rank) const {
    const Timeline& timeline = step_.ranks[static_cast<std::size_t>(rank)];
    const StageRank place = grid_.locate(rank);
    const StageOps& ops = stages_[static_cast<std::size_t>(place.stage)];
    const auto spans = sorted_spans(timeline);
    const double shift = timeline.ranks.front().clock.value() - origin_;
    std::map<SpanKey, std::size_t> next;
    std::vector<OpTime> matched(ops.size());
    std::vector<double> queue_free(queues_, shift);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const SpanKey key{ops[i].op->stream, peer_of(*ops[i].op, place)};
      const auto found = spans.find(key);
      std::size_t& index = next[key];
      const Span& span = checked(
          rank, ops[i],
          found == spans.end() || index >= found->second.size() ? nullptr : found->second[index++]);
      OpTime& time = matched[i];
      time.start = span.start.value() + shift;
      time.end = span.end().value() + shift;
      time.ready = queue_free[ops[i].queue];
      for (const std::uint32_t on : ops[i].waits)
        time.ready = std::max(time.ready, matched[on].end);
      time.ready = std::min(time.ready, time.start);
      queue_free[ops[i].queue] = time.end;
    }
    return matched;
  }

  // The span, if there is one and it is that of the op.
  const Span& checked(std::int64_t rank, const StageOp& op, const Span* span) const {
    if (span != nullptr && span->name == op.op->name && span->layer == op.call->layer &&
        span->microbatch == op.call->microbatch)
      return *span;
    const std::string expected =
        shardwright::describe(op.op->name, op.call->layer, op.call->microbatch);
    throw InputError(
        fmt::format("{}/{}", run_.name, name_of(TimelineFile{step_.step, rank})),
        {{fmt::format("{}", name_of(op.op->stream)),
          span == nullptr ? "no further span"
                          : shardwright::describe(span->name, span->layer, span->microbatch),
          expected + ", as the run's plan has it"}});
  }

  const MeasuredRun& run_;
  const MeasuredStep& step_;
  const RankGrid& grid_;
  const std::vector<StageOps>& stages_;
  std::size_t queues_;
  double origin_ = 0.0;
};

// True for what the rank itself computes; parameter servers are other processes.
bool runs_on_rank(const Op& op) {
  return !is_communication(op.kind) && op.kind != OpKind::ServerOptimizer;
}

// All timings of a run, by what was timed.
class Sampler {
 public:
  Sampler(const MeasuredRun& run, const ClusterSpec& cluster)
      : run_(run),
        cluster_(cluster),
        program_(lower(run.scenario.model, run.scenario.plan, run.scenario.stack)),
        grid_(run.scenario.plan),
        between_pools_(run.scenario.plan, grid_, cluster) {
    const Queues queues(program_);
    queues_ = queues.count();
    for (const RankProgram& stage : program_.stages)
      stages_.push_back(ops_of(program_, stage, queues));
  }

  RunSamples samples() {
    for (const MeasuredStep& step : run_.steps) add(step);
    finish_slowdown();
    for (Kernel& kernel : kernels_) {
      for (const auto& [step, values] : kernel.alone)
        kernel.sample.times.emplace_back(mean(values));
      result_.kernels.push_back(std::move(kernel.sample));
    }
    for (Exchange& exchange : exchanges_) {
      for (const auto& [step, values] : exchange.values)
        exchange.timing.times.emplace_back(mean(values));
      for (const auto& [step, values] : exchange.skews)
        exchange.timing.skews.emplace_back(mean(values));
      result_.exchanges.push_back(std::move(exchange.timing));
    }
    result_.between_pools = std::move(between_pools_).timed();
    return std::move(result_);
  }

 private:
  using ByStep = std::map<std::int64_t, std::vector<double>>;
  struct Beside {
    std::int64_t step;
    // The share and the time of the kernel that ran beside a collective.
    double share, time;
  };
  struct Kernel {
    KernelSample sample;
    ByStep alone;
    std::vector<Beside> beside;
  };
  struct Exchange {
    ExchangeTiming timing;
    ByStep values, skews;
  };
  struct Member {
    std::int64_t rank;
    std::uint32_t op;
  };
  // Group, number of the group, stream, and turn; of messages sender, receiver, stream and turn.
  using CollectiveKey = std::tuple<int, std::int64_t, int, std::uint32_t>;
  using Collectives = std::map<CollectiveKey, std::vector<Member>>;

  const StageOps& ops_of_rank(std::int64_t rank) const {
    return stages_[static_cast<std::size_t>(grid_.locate(rank).stage)];
  }

  // True if the rank is on the profile's hosts: of a plan that names pools, on the pool of its
  // name.
  bool is_described(std::int64_t rank) const {
    const Plan& plan = run_.scenario.plan;
    const auto stage = static_cast<std::size_t>(grid_.locate(rank).stage);
    return !names_pools(plan) || pool_name_of_stage(plan, stage) == cluster_.name;
  }

  void add(const MeasuredStep& step) {
    const StepMatch match(run_, step, grid_, stages_, queues_);
    for (std::size_t rank = 0; rank < step.ranks.size(); ++rank) {
      if (!is_described(static_cast<std::int64_t>(rank))) continue;
      const auto ops = static_cast<double>(ops_of_rank(static_cast<std::int64_t>(rank)).size());
      result_.launches.push_back(step.ranks[rank].ranks.front().issue / ops);
    }
    // Collectives by rank.
    std::vector<std::vector<BusySpan>> busy(step.ranks.size());
    for (const auto& [key, members] : collectives(match))
      add_collective(step.step, members, match, busy);
    for (std::size_t rank = 0; rank < step.ranks.size(); ++rank)
      if (is_described(static_cast<std::int64_t>(rank)))
        add_kernels(step.step, static_cast<std::int64_t>(rank), match.times[rank], busy[rank]);
    add_variation(match);
  }

  Collectives collectives(const StepMatch& match) {
    Collectives collectives;
    std::map<std::tuple<int, std::int64_t, int, std::int64_t>, std::uint32_t> turns;
    for (std::size_t r = 0; r < match.times.size(); ++r) {
      const auto rank = static_cast<std::int64_t>(r);
      const StageOps& ops = ops_of_rank(rank);
      for (std::uint32_t i = 0; i < ops.size(); ++i) {
        const auto* work = std::get_if<CommunicationWork>(&ops[i].op->work);
        if (work == nullptr) continue;
        const auto [group, number, stream] = place_of(*ops[i].op, *work, rank);
        const std::uint32_t turn = turns[{group, number, stream, rank}]++;
        collectives[{group, number, stream, turn}].push_back({rank, i});
      }
    }
    return collectives;
  }

  std::tuple<int, std::int64_t, int> place_of(const Op& op, const CommunicationWork& work,
                                              std::int64_t rank) {
    const int group = static_cast<int>(work.group);
    if (!is_message(op.kind)) {
      const GroupTable& table = table_of(work.group);
      return {group, table.group_of[static_cast<std::size_t>(rank)], static_cast<int>(op.stream)};
    }
    StageRank peer = grid_.locate(rank);
    peer.stage += work.peer_offset;
    const std::int64_t other = grid_.rank_at(peer);
    const bool sends = op.kind == OpKind::Send;
    const bool gradient = op.stream == Stream::SendGradient || op.stream == Stream::ReceiveGradient;
    const std::int64_t from = sends ? rank : other, to = sends ? other : rank;
    return {kGroups + (gradient ? 1 : 0), from * grid_.world_size() + to, -1};
  }

  const GroupTable& table_of(Group group) {
    const auto found = tables_.find(group);
    return found != tables_.end() ? found->second
                                  : tables_.emplace(group, grid_.table(group)).first->second;
  }

  void add_collective(std::int64_t step, const std::vector<Member>& members, const StepMatch& match,
                      std::vector<std::vector<BusySpan>>& busy) {
    if (members.size() < 2) return;
    const Op& op = *ops_of_rank(members.front().rank)[members.front().op].op;
    // Profiles have no figures of parameter servers, which other processes run.
    if (is_server_transfer(op.kind)) return;
    // Most steps have none of an exchange of local steps, and a thread of its own may run it.
    if (op.every > 1 || op.beside_steps > 0) return;
    const auto& work = std::get<CommunicationWork>(op.work);
    std::vector<double> readies;
    double end = 0.0;
    for (const Member& member : members) {
      const OpTime& time = match.times[static_cast<std::size_t>(member.rank)][member.op];
      readies.push_back(time.ready);
      end = std::max(end, time.end);
    }
    const double last = *std::max_element(readies.begin(), readies.end());
    const auto is_inside = [&](const Member& member) { return is_described(member.rank); };
    if (std::ranges::all_of(members, is_inside))
      add_exchange(step, op, readies, end, !is_message(op.kind) && !joins_stages(work.group));
    std::vector<std::int64_t> ranks;
    for (const Member& member : members) ranks.push_back(member.rank);
    between_pools_.add(step, op, ranks, std::max(kLeast, end - last));
    if (is_message(op.kind)) return;
    for (const Member& member : members)
      busy[static_cast<std::size_t>(member.rank)].push_back({last, end});
  }

  // Adds a collective or message that ended at `end`, with the times at which its members were
  // ready. Only members of one stage, `of_one_stage`, show how far ranks lie apart.
  void add_exchange(std::int64_t step, const Op& op, const std::vector<double>& readies, double end,
                    bool of_one_stage) {
    const auto& work = std::get<CommunicationWork>(op.work);
    const double last = *std::max_element(readies.begin(), readies.end());
    ExchangeTiming timing;
    timing.name = op.name;
    // A ring shift is one message from each member to the next, and has the price of one.
    const bool sends = is_message(op.kind) || op.kind == OpKind::RingShift;
    timing.kind = sends ? OpKind::Send : op.kind;
    timing.placement = sim::place(work.group, run_.scenario.plan, cluster_);
    timing.bytes = work.bytes;
    Exchange& exchange = exchange_of(timing);
    exchange.values[step].push_back(std::max(kLeast, end - last));
    if (of_one_stage) exchange.skews[step].push_back(std::max(kLeast, last - mean(readies)));
    exchange.timing.total += Seconds((end - mean(readies)) * static_cast<double>(readies.size()));
  }

  Exchange& exchange_of(const ExchangeTiming& timing) {
    for (Exchange& exchange : exchanges_) {
      const ExchangeTiming& known = exchange.timing;
      if (known.kind == timing.kind && known.placement == timing.placement &&
          known.bytes == timing.bytes && known.name == timing.name)
        return exchange;
    }
    exchanges_.push_back({timing, {}, {}});
    return exchanges_.back();
  }

  void add_kernels(std::int64_t step, std::int64_t rank, const std::vector<OpTime>& times,
                   const std::vector<BusySpan>& busy) {
    constexpr double kAlone = 0.02;
    const StageOps& ops = ops_of_rank(rank);
    // Two events around each op delay it on a GPU.
    const double recording = run_.recording_time.value() / static_cast<double>(ops.size());
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Op& op = *ops[i].op;
      if (!runs_on_rank(op)) continue;
      const double recorded = times[i].end - times[i].ready;
      const double share = recorded > 0.0 ? covered(times[i], busy) / recorded : 0.0;
      const double time = std::max(kLeast, recorded - recording);
      Kernel& kernel = kernel_of(op);
      kernel.sample.total += Seconds(time);
      if (share < kAlone) {
        kernel.alone[step].push_back(time);
      } else {
        kernel.beside.push_back({step, share, time});
      }
    }
  }

  static double covered(const OpTime& time, const std::vector<BusySpan>& busy) {
    double sum = 0.0;
    for (const BusySpan& each : busy)
      sum += std::max(0.0, std::min(each.end, time.end) - std::max(each.start, time.ready));
    return sum;
  }

  Kernel& kernel_of(const Op& op) {
    const Phase phase = op.phase == Phase::Recompute ? Phase::Forward : op.phase;
    for (Kernel& kernel : kernels_) {
      const KernelSample& known = kernel.sample;
      if (known.kind == op.kind && known.phase == phase && known.precision == op.precision &&
          known.work == op.work)
        return kernel;
    }
    Kernel& kernel = kernels_.emplace_back();
    kernel.sample = {op.name, op.kind, phase, op.precision, op.work, {}, {}};
    return kernel;
  }

  // A kernel of which a share f ran beside a collective took 1 + s f as long as alone. Kernels that
  // never ran alone are brought back to what they would have taken.
  void finish_slowdown() {
    constexpr double kLeastShare = 0.3;
    for (const Kernel& kernel : kernels_) {
      if (kernel.alone.empty()) continue;
      std::vector<double> alone, ratios;
      for (const auto& [step, values] : kernel.alone)
        alone.insert(alone.end(), values.begin(), values.end());
      const double time = middle_mean(alone);
      for (const Beside& each : kernel.beside)
        if (each.share > kLeastShare) ratios.push_back((each.time / time - 1.0) / each.share);
      if (ratios.size() > 1) result_.slowdowns.push_back(middle_mean(ratios));
    }
    const double slowdown = result_.slowdowns.empty()
                                ? run_.scenario.stack.overlap.slowdown
                                : std::max(0.0, middle_mean(result_.slowdowns));
    for (Kernel& kernel : kernels_) {
      if (!kernel.alone.empty()) continue;
      for (const Beside& each : kernel.beside)
        kernel.alone[each.step].push_back(each.time / (1.0 + slowdown * each.share));
    }
  }

  void add_variation(const StepMatch& match) {
    double squares = 0.0, means = 0.0;
    std::size_t stages = 0;
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      std::vector<double> totals;
      for (std::int64_t index = 0; index < grid_.stage_size(static_cast<std::int64_t>(stage));
           ++index) {
        const std::int64_t rank = grid_.rank_at({static_cast<std::int64_t>(stage), index});
        if (!is_described(rank)) break;
        totals.push_back(kernel_time(stages_[stage], match.times[static_cast<std::size_t>(rank)]));
      }
      if (totals.size() < 2) continue;
      const double average = mean(totals);
      for (const double total : totals)
        squares += (total - average) * (total - average) / static_cast<double>(totals.size() - 1);
      means += average * average;
      ++stages;
    }
    if (stages > 0) result_.variations.push_back(std::sqrt(squares / means));
  }

  static double kernel_time(const StageOps& ops, const std::vector<OpTime>& times) {
    double sum = 0.0;
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (runs_on_rank(*ops[i].op)) sum += times[i].end - times[i].ready;
    return sum;
  }

  const MeasuredRun& run_;
  const ClusterSpec& cluster_;
  Program program_;
  RankGrid grid_;
  std::vector<StageOps> stages_;
  std::size_t queues_ = 0;
  std::map<Group, GroupTable> tables_;
  std::vector<Kernel> kernels_;
  std::vector<Exchange> exchanges_;
  PoolExchanges between_pools_;
  RunSamples result_;
};

}  // namespace

Seconds middle_mean(const std::vector<Seconds>& times) {
  std::vector<double> values;
  for (const Seconds time : times) values.push_back(time.value());
  return Seconds(middle_mean(std::move(values)));
}

RunSamples sample_run(const MeasuredRun& run, const ClusterSpec& cluster) {
  return Sampler(run, cluster).samples();
}

std::vector<MeasuredKernel> kernels_of(const std::vector<MeasuredRun>& runs,
                                       const ClusterSpec& cluster) {
  std::vector<MeasuredKernel> kernels;
  // The timings of each op.
  std::vector<double> timings;
  const auto entry = [&](const KernelSample& sample) {
    const MeasuredKernel kernel{sample.kind, sample.precision, sample.work, Seconds()};
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const MeasuredKernel& known = kernels[i];
      if (known.kind == kernel.kind && known.precision == kernel.precision &&
          known.work == kernel.work)
        return i;
    }
    kernels.push_back(kernel);
    timings.push_back(0.0);
    return kernels.size() - 1;
  };
  for (const MeasuredRun& run : runs) {
    for (const KernelSample& sample : sample_run(run, cluster).kernels) {
      if (std::holds_alternative<HostUpdateWork>(sample.work)) continue;
      const std::size_t i = entry(sample);
      for (const Seconds time : sample.times) kernels[i].time += time;
      timings[i] += static_cast<double>(sample.times.size());
    }
  }
  for (std::size_t i = 0; i < kernels.size(); ++i) kernels[i].time *= 1.0 / timings[i];
  return kernels;
}

}  // namespace shardwright::calibration
