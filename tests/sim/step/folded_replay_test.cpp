// Laws of the event level over random programs and prices.
#include "sim/step/folded_replay.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "core/schedule/schedule_timing.hpp"
#include "sim/engine/event_queue.hpp"
#include "tests/core/lowering/random_lowering.hpp"

namespace shardwright::sim {
namespace {

// A second, slow implementation of the event level: one event for each op that is issued and for
// each that ends, on queues per stream and channel. Shares no code with the folded replay.
class NaiveReplay {
 public:
  NaiveReplay(const Program& program, const Prices& prices) : program_(program) {
    for (const RankProgram& rank : program.stages) issue_all(rank, prices);
  }

  // The end of the last op.
  Seconds run() {
    issue_after(kNone);
    events_.run([this](const auto& event) {
      NaiveOp& op = ops_[event.payload.op];
      (event.payload.issued ? op.is_issued : op.is_done) = true;
      if (!event.payload.issued && op.is_hold) issue_after(event.payload.op);
      start_what_can();
    });
    return events_.now();
  }

  bool all_done() const {
    return std::ranges::all_of(ops_, [](const NaiveOp& op) { return op.is_done; });
  }

 private:
  struct NaiveOp {
    // Both count from the end of `hold` on, if there is one.
    double duration = 0.0, issued = 0.0;
    std::size_t hold = kNone;
    // The op before it on its queue, and those that it waits for.
    std::vector<std::size_t> needs;
    std::size_t rendezvous = kNone;
    // True for a hold of the host, which is no op of the program.
    bool is_hold = false;
    bool is_issued = false, is_started = false, is_done = false;
  };
  struct Event {
    std::size_t op;
    bool issued;
  };
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  void issue_after(std::size_t hold) {
    for (std::size_t id = 0; id < ops_.size(); ++id) {
      if (ops_[id].hold == hold)
        events_.schedule_at(events_.now() + Seconds(ops_[id].issued), EventPriority::Completion,
                            {id, true});
    }
  }

  void issue_all(const RankProgram& rank, const Prices& prices) {
    std::vector<std::size_t> ids;
    std::size_t hold = kNone, last_kernel = kNone;
    std::map<std::tuple<Stream, std::int32_t>, std::size_t> last_of_queue;
    std::array<int, kGroups> turns{};
    double host = 0.0, launched = 0.0;
    for (const Call& call : rank.calls) {
      const Block& block = program_.blocks[call.block];
      for (std::size_t i = 0; i < block.ops.size(); ++i) {
        const Op& op = block.ops[i];
        NaiveOp made;
        made.duration = prices.blocks[call.block][i].value();
        const auto* memory = std::get_if<MemoryWork>(&op.work);
        const double launches = prices.launch.front().per_call ? (i == 0 ? 1.0 : 0.0)
                                : memory != nullptr ? static_cast<double>(memory->kernels)
                                                    : 1.0;
        const double launch = launches * prices.launch.front().kernel.value();
        const double further = prices.launch.front().per_call
                                   ? 0.0
                                   : op.further_launches * prices.launch.front().kernel.value();
        // A receive that waits for nothing is posted whatever the host waited for before.
        const bool posted = op.kind == OpKind::Receive && i == 0 && !op.holds_host &&
                            op.waits.empty() && !waits(rank, call);
        made.issued = (posted ? launched : host) + launch;
        made.hold = posted ? kNone : hold;
        host += launch + further;
        launched += launch + further;
        for (const std::uint16_t on : op.waits) made.needs.push_back(ids[call.first_op + on]);
        const auto* work = std::get_if<CommunicationWork>(&op.work);
        const std::tuple queue{op.stream, work == nullptr ? 0 : work->peer_offset};
        if (last_of_queue.count(queue) > 0) made.needs.push_back(last_of_queue[queue]);
        last_of_queue[queue] = ops_.size();
        if (work != nullptr) made.rendezvous = rendezvous_of(rank.stage, call, op, *work, turns);
        if (made.rendezvous != kNone) rendezvous_[made.rendezvous].push_back(ops_.size());
        ids.push_back(ops_.size());
        if (op.stream == Stream::Compute) last_kernel = ops_.size();
        ops_.push_back(made);
        if (!op.holds_host) continue;
        hold = hold_host(ids.back(), last_kernel, hold);
        host = further;
      }
    }
    for (const Wait& wait : rank.waits) ops_[ids[wait.op]].needs.push_back(ids[wait.on]);
  }

  // True if an op of the call waits for another call.
  bool waits(const RankProgram& rank, const Call& call) const {
    const std::size_t end = call.first_op + program_.blocks[call.block].ops.size();
    return std::ranges::any_of(
        rank.waits, [&](const Wait& wait) { return wait.op >= call.first_op && wait.op < end; });
  }

  std::size_t hold_host(std::size_t receive, std::size_t last_kernel, std::size_t before) {
    NaiveOp made;
    made.is_hold = true;
    made.hold = before;
    made.needs.push_back(receive);
    if (last_kernel != kNone) made.needs.push_back(last_kernel);
    ops_.push_back(made);
    return ops_.size() - 1;
  }

  std::size_t rendezvous_of(std::int32_t stage, const Call& call, const Op& op,
                            const CommunicationWork& work, std::array<int, kGroups>& turns) {
    const bool message = op.kind == OpKind::Send || op.kind == OpKind::Receive;
    const bool joins = work.group == Group::EmbeddingTie || work.group == Group::ModelParallel;
    if (!message && (!joins || program_.stages.size() == 1)) return kNone;
    std::tuple<int, int, int, int> key{-1, static_cast<int>(work.group),
                                       turns[static_cast<std::size_t>(work.group)], 0};
    if (message) {
      const std::int32_t sender = op.kind == OpKind::Send ? stage : stage + work.peer_offset;
      key = {sender, call.layer, call.microbatch, op.phase == Phase::Forward ? 0 : 1};
    } else {
      ++turns[static_cast<std::size_t>(work.group)];
    }
    const auto [found, is_new] = rendezvous_ids_.try_emplace(key, rendezvous_.size());
    if (is_new) rendezvous_.emplace_back();
    return found->second;
  }

  bool is_ready(const NaiveOp& op) const {
    return op.is_issued && !op.is_started &&
           std::ranges::all_of(op.needs, [this](std::size_t need) { return ops_[need].is_done; });
  }

  void start(std::size_t id) {
    ops_[id].is_started = true;
    events_.schedule_at(events_.now() + Seconds(ops_[id].duration), EventPriority::Completion,
                        {id, false});
  }

  void start_what_can() {
    for (std::size_t id = 0; id < ops_.size(); ++id) {
      if (!is_ready(ops_[id])) continue;
      if (ops_[id].rendezvous == kNone) {
        start(id);
        continue;
      }
      const std::vector<std::size_t>& members = rendezvous_[ops_[id].rendezvous];
      if (std::ranges::all_of(members,
                              [this](std::size_t member) { return is_ready(ops_[member]); })) {
        for (const std::size_t member : members) start(member);
      }
    }
  }

  const Program& program_;
  std::vector<NaiveOp> ops_;
  std::map<std::tuple<int, int, int, int>, std::size_t> rendezvous_ids_;
  std::vector<std::vector<std::size_t>> rendezvous_;
  EventQueue<Event> events_;
};

// Small whole numbers, so that sums are exact and any order of adding them up agrees. Both ends of
// a message have one price.
Prices random_prices(const Program& program, CaseGenerator& random) {
  Prices prices;
  prices.launch.resize(1);
  prices.launch.front().kernel = Seconds(static_cast<double>(random.between(0, 3)));
  prices.launch.front().per_call = random.flag();
  const auto any_price = [&random] { return Seconds(static_cast<double>(random.between(0, 20))); };
  const Seconds message = any_price();
  for (const Block& block : program.blocks) {
    BlockPrices& durations = prices.blocks.emplace_back();
    for (const Op& op : block.ops) {
      const bool is_message = op.kind == OpKind::Send || op.kind == OpKind::Receive;
      durations.push_back(is_message ? message : any_price());
    }
  }
  return prices;
}

struct PricedCase {
  LoweringCase made;
  Program program;
  Prices prices;
};

PricedCase random_case(std::uint64_t seed) {
  CaseGenerator random(seed);
  LoweringCase made = random.next();
  Program program = made.lower();
  Prices prices = random_prices(program, random);
  return {std::move(made), std::move(program), std::move(prices)};
}

template <class Change>
Prices changed(const PricedCase& priced, Change change) {
  Prices prices = priced.prices;
  for (std::size_t b = 0; b < prices.blocks.size(); ++b) {
    for (std::size_t i = 0; i < prices.blocks[b].size(); ++i)
      prices.blocks[b][i] = change(priced.program.blocks[b].ops[i], prices.blocks[b][i]);
  }
  return prices;
}

TEST(FoldedReplay, EqualsTheNaiveReplayExactly) {
  int compared = 0;
  for (std::uint64_t seed = 0; compared < 150; ++seed) {
    const PricedCase priced = random_case(seed);
    std::uint32_t ops = 0;
    for (const RankProgram& rank : priced.program.stages) ops += rank.ops;
    if (ops > 900) continue;  // the naive one is quadratic
    NaiveReplay naive(priced.program, priced.prices);
    const Seconds expected = naive.run();
    ASSERT_TRUE(naive.all_done()) << seed;
    ASSERT_EQ(replay_folded(priced.program, priced.prices).step.value(), expected.value())
        << "seed " << seed << ": " << shown(priced.made);
    ++compared;
  }
}

TEST(FoldedReplay, BreakdownAddsUpAndNoStreamIsBusyLongerThanTheStep) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const PricedCase priced = random_case(seed);
    const FoldedReplay replay = replay_folded(priced.program, priced.prices);
    ASSERT_FALSE(replay.deadlocked) << shown(priced.made);
    for (std::size_t s = 0; s < replay.time.size(); ++s) {
      const TimeBreakdown& time = replay.time[s];
      ASSERT_NEAR(time.total().value(), replay.step.value(), 1e-6 * replay.step.value())
          << "seed " << seed << " stage " << s << ": " << shown(priced.made);
      for (const Seconds part : {time.bubble, time.host, time.exposed_total(), time.recompute})
        ASSERT_GE(part.value(), 0.0);
      ASSERT_LE(time.recompute, time.compute());
      const Seconds computing = replay.busy[s][static_cast<std::size_t>(Stream::Compute)];
      // The device waits for an optimizer on the host.
      const Seconds elsewhere = computing - (time.compute() + time.optimizer);
      ASSERT_GE(elsewhere, Seconds());
      ASSERT_LE(elsewhere, priced.program.plan.offloads_optimizer() ? time.offload : Seconds());
      for (const Stream stream :
           {Stream::Compute, Stream::TensorParallel, Stream::ContextParallel,
            Stream::ExpertParallel, Stream::GradientReduce, Stream::ParameterGather})
        ASSERT_LE(replay.busy[s][static_cast<std::size_t>(stream)], replay.step);
    }
  }
}

TEST(FoldedReplay, AllPricesTimesAFactorScaleTheStep) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const PricedCase priced = random_case(seed);
    Prices quadruple = changed(priced, [](const Op&, Seconds price) { return price * 4.0; });
    quadruple.launch.front().kernel *= 4.0;
    ASSERT_EQ(replay_folded(priced.program, quadruple).step.value(),
              4.0 * replay_folded(priced.program, priced.prices).step.value())
        << seed;
  }
}

// The step is the longest path through the ops, so a slower op never makes it shorter.
TEST(FoldedReplay, SlowerOpsNeverShortenTheStep) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const PricedCase priced = random_case(seed);
    const auto slowed = static_cast<OpKind>(seed % (static_cast<std::uint64_t>(OpKind::Send) + 1));
    const Prices prices = changed(priced, [slowed](const Op& op, Seconds price) {
      const bool receives = op.kind == OpKind::Receive && slowed == OpKind::Send;
      return op.kind == slowed || receives ? price * 3.0 : price;
    });
    ASSERT_GE(replay_folded(priced.program, prices).step,
              replay_folded(priced.program, priced.prices).step)
        << name_of(slowed) << " " << seed << ": " << shown(priced.made);
  }
}

TEST(FoldedReplay, OfOneRankIsTheSumOfItsOps) {
  for (std::uint64_t seed = 0, compared = 0; compared < 5; ++seed) {
    PricedCase priced = random_case(seed);
    if (priced.made.plan.world_size() > 1) continue;
    ++compared;
    // Nobody to talk to, and copies to the host free: they run beside the kernels.
    priced.prices = changed(priced, [](const Op& op, Seconds price) {
      return is_communication(op.kind) || op.stream == Stream::Offload ? Seconds(0.0) : price;
    });
    priced.prices.launch.front().kernel = Seconds(0.0);
    double sum = 0.0;
    for (const Call& call : priced.program.stages.front().calls) {
      for (const Seconds price : priced.prices.blocks[call.block]) sum += price.value();
    }
    ASSERT_EQ(replay_folded(priced.program, priced.prices).step.value(), sum);
  }
}

// The same ops, each in a block of its own.
struct OpByOp {
  Program program;
  Prices prices;
};

void split_calls(const Program& from, const std::vector<std::uint32_t>& first_block,
                 RankProgram& rank) {
  const RankProgram whole = std::exchange(rank, {});
  rank.stage = whole.stage;
  rank.ops = whole.ops;
  for (std::size_t c = 0; c < whole.calls.size(); ++c) {
    const std::vector<Op>& ops = from.blocks[whole.calls[c].block].ops;
    for (std::uint32_t i = 0; i < ops.size(); ++i) {
      Call call = whole.calls[c];
      const std::uint32_t first = call.first_op;
      call.block = first_block[call.block] + i;
      call.first_op = first + i;
      call.first_wait = static_cast<std::uint32_t>(rank.waits.size());
      rank.calls.push_back(call);
      for (const std::uint16_t on : ops[i].waits) rank.waits.push_back({first + i, first + on});
      for (const Wait& wait : whole.waits_of(c)) {
        if (wait.op == first + i) rank.waits.push_back(wait);
      }
    }
  }
}

OpByOp op_by_op(const Program& program, const Prices& prices) {
  OpByOp split{program, prices};
  std::vector<std::uint32_t> first_block;
  split.program.blocks.clear();
  split.prices.blocks.clear();
  split.prices.ports.clear();
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    first_block.push_back(static_cast<std::uint32_t>(split.program.blocks.size()));
    for (std::size_t i = 0; i < program.blocks[b].ops.size(); ++i) {
      Op op = program.blocks[b].ops[i];
      op.waits.clear();
      split.program.blocks.push_back({op.name, {op}});
      split.prices.blocks.push_back({prices.blocks[b][i]});
      split.prices.ports.push_back({prices.ports[b][i]});
    }
  }
  for (RankProgram& rank : split.program.stages) split_calls(program, first_block, rank);
  return split;
}

// Times in general position, of collectives and kernels that slow each other down.
Prices shared_prices(const Program& program, CaseGenerator& random) {
  Prices prices = random_prices(program, random);
  const auto any = [&random] { return static_cast<double>(random.between(1, 1'000'000)) * 1e-6; };
  const Seconds message(any());
  prices.launch.front().kernel = Seconds(0.1 * any());
  prices.launch.front().per_call = false;
  prices.contention = {any(), any()};
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    BlockPorts& ports = prices.ports.emplace_back();
    for (std::size_t i = 0; i < program.blocks[b].ops.size(); ++i) {
      const OpKind kind = program.blocks[b].ops[i].kind;
      const bool is_message = kind == OpKind::Send || kind == OpKind::Receive;
      prices.blocks[b][i] = is_message ? message : Seconds(any());
      ports.push_back({static_cast<float>(any()), static_cast<float>(any())});
    }
  }
  return prices;
}

// A replay repeats the times of a block that runs alone; ops one by one have none to repeat.
TEST(FoldedReplay, BlocksEndAsTheirOpsOneByOne) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CaseGenerator random(seed);
    const LoweringCase made = random.next();
    const Program program = made.lower();
    const Prices prices = shared_prices(program, random);
    const OpByOp split = op_by_op(program, prices);
    const FoldedReplay whole = replay_folded(program, prices, {.keep_finish_times = true});
    const FoldedReplay single =
        replay_folded(split.program, split.prices, {.keep_finish_times = true});
    const double rounding = 1e-11 * single.step.value();
    for (std::size_t s = 0; s < program.stages.size(); ++s) {
      for (std::size_t op = 0; op < program.stages[s].ops; ++op) {
        ASSERT_NEAR(whole.finish[s][op].value(), single.finish[s][op].value(), rounding)
            << "seed " << seed << " stage " << s << " op " << op << ": " << shown(made);
        ASSERT_NEAR(whole.interference[s][op].value(), single.interference[s][op].value(), rounding)
            << "seed " << seed;
      }
      for (std::size_t i = 0; i < whole.busy[s].size(); ++i)
        ASSERT_NEAR(whole.busy[s][i].value(), single.busy[s][i].value(), rounding) << seed;
      TimeBreakdown difference = whole.time[s];
      difference.add(single.time[s], -1.0);
      for (const Seconds part : {difference.interference, difference.bubble, difference.host,
                                 difference.stall, difference.exposed_total()})
        ASSERT_NEAR(part.value(), 0.0, 1e-6 * single.step.value()) << seed << ": " << shown(made);
    }
  }
}

// Two stages whose sends delay the kernels after them: each waits for the other one to receive,
// which its host has asked for long before.
TEST(FoldedReplay, SendsThatHoldUpTheirStageDoNotLock) {
  LoweringCase made = small_case(2);
  made.plan.pp = 2;
  made.plan.global_batch = 4;
  made.plan.schedule = ScheduleKind::ZbH2;
  made.plan.overlap.p2p = false;
  const Program program = made.lower();
  CaseGenerator random(1);
  const Prices prices = random_prices(program, random);
  const FoldedReplay replay = replay_folded(program, prices);
  EXPECT_FALSE(replay.deadlocked);
  EXPECT_EQ(replay.step.value(), NaiveReplay(program, prices).run().value());
}

// The times of the blocks of one microbatch on each chunk.
std::vector<std::vector<ChunkTimes>> chunk_times_of(const PricedCase& priced, std::int64_t chunks) {
  std::vector<std::vector<ChunkTimes>> times;
  for (const RankProgram& rank : priced.program.stages) {
    std::vector<ChunkTimes>& of_stage = times.emplace_back(static_cast<std::size_t>(chunks));
    for (const Call& call : rank.calls) {
      const std::string& name = priced.program.blocks[call.block].name;
      if (call.microbatch != 0) continue;
      ChunkTimes& chunk = of_stage[static_cast<std::size_t>(call.chunk)];
      Seconds& sum = name.ends_with(".forward")           ? chunk.forward
                     : name.ends_with(".backward_weight") ? chunk.backward_weight
                                                          : chunk.backward_input;
      for (const Seconds price : priced.prices.blocks[call.block]) sum += price;
    }
  }
  return times;
}

// The order of the schedule is all that is left if communication, copies to the host, host and
// optimizer are free. DualPipe is left out: the ideal times run its pairs as one, the program one
// after the other.
TEST(FoldedReplay, WithoutCommunicationIsTheScheduleAlone) {
  int compared = 0;
  for (std::uint64_t seed = 0; compared < 400; ++seed) {
    PricedCase priced = random_case(seed);
    const Plan& plan = priced.made.plan;
    if (plan.schedule == ScheduleKind::DualPipe) continue;
    ++compared;
    priced.prices = changed(priced, [](const Op& op, Seconds price) {
      const bool beside = is_communication(op.kind) || op.stream == Stream::Offload;
      return beside || op.phase == Phase::Optimizer ? Seconds(0.0) : price;
    });
    priced.prices.launch.front().kernel = Seconds(0.0);
    const PipelineSchedule schedule = make_schedule(plan.schedule, shape_of(plan));
    const auto ideal = time_schedule(schedule, chunk_times_of(priced, plan.vpp));
    ASSERT_TRUE(ideal.has_value());
    ASSERT_EQ(replay_folded(priced.program, priced.prices).step.value(), ideal->makespan.value())
        << "seed " << seed << ": " << shown(priced.made);
  }
}

}  // namespace
}  // namespace shardwright::sim
