#include "tests/fake_cuda/fake_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "executor/comm/nccl_communicator.hpp"
#include "executor/kernels/cuda/cuda_device.hpp"

namespace shardwright::executor {
namespace {

constexpr std::array kNames{"compute",   "all_reduce", "all_gather", "reduce_scatter",
                            "broadcast", "send",       "receive"};

}  // namespace

std::string name_of(const RankOp& op) {
  return fmt::format("{} {} of rank {}", kNames.at(static_cast<std::size_t>(op.action)), op.number,
                     op.rank);
}

Results results_in(const std::vector<RankReport>& reports) {
  Results results;
  for (const RankReport& report : reports) {
    results.arenas.push_back(report.arena);
    results.checksums.push_back(report.checksums);
  }
  return results;
}

FakeRanks::FakeRanks(World world, fake::Order order, std::uint64_t seed,
                     std::chrono::milliseconds timeout)
    : world_(std::move(world)), gpus_(world_.ranks, order, seed) {
  for (int rank = 0; rank < world_.ranks; ++rank) ranks_.push_back(std::make_unique<Rank>());
  on_each_rank([&](int rank) {
    connect(rank, timeout);
    warm_up(rank);
  });
}

void FakeRanks::on_each_rank(const std::function<void(int rank)>& work) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_.ranks; ++rank) {
    threads.emplace_back([&work, rank] {
      use_gpu(rank);
      work(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void FakeRanks::connect(int rank, std::chrono::milliseconds timeout) {
  Rank& own = *ranks_[static_cast<std::size_t>(rank)];
  for (std::size_t group = 0; group < world_.groups.size(); ++group) {
    const std::vector<int>& members = world_.groups[group];
    const auto found = std::find(members.begin(), members.end(), rank);
    if (found == members.end()) continue;
    own.groups[group] =
        connect_nccl(store_, std::to_string(group), static_cast<int>(found - members.begin()),
                     static_cast<int>(members.size()), timeout);
  }
  const QueueHooks hooks{[&own] {
                           ++own.report.failures;
                           for (auto& [number, group] : own.groups) group->abort();
                         },
                         [&own] {
                           for (auto& [number, group] : own.groups) group->check();
                         }};
  own.queues =
      make_cuda_queues(world_.queues, hooks, timeout, [this, &own](const std::string& why) {
        // The process would end.
        own.report.hang = why;
        gpus_.release_hanging();
      });
}

// Connects the channels, in the same order on all members.
void FakeRanks::warm_up(int rank) {
  Rank& own = *ranks_[static_cast<std::size_t>(rank)];
  const std::shared_ptr<void> byte = gpu_memory(1);
  QueuedOp op;
  op.name = [] { return "the first transfers"; };
  op.run = [&](Queue queue) {
    for (auto& [number, group] : own.groups) {
      for (int from = 0; from < group->size(); ++from) {
        for (int to = 0; to < group->size(); ++to) {
          for (int channel = 0; from != to && channel < 2; ++channel) {
            if (from == group->rank()) group->send(byte.get(), 1, to, channel, queue);
            if (to == group->rank()) group->receive(byte.get(), 1, from, channel, queue);
          }
        }
      }
    }
  };
  own.queues->begin(1);
  own.queues->issue(0, std::move(op));
  own.queues->drain();
}

// A rank that fails does nothing more.
void FakeRanks::guarded(int rank, const std::function<void()>& work) {
  Rank& own = *ranks_[static_cast<std::size_t>(rank)];
  if (!own.report.error.empty()) return;
  try {
    work();
  } catch (const OpError& failure) {
    own.report.error = failure.what();
  } catch (const CudaError& failure) {
    // Not in an op: the process would end.
    own.report.error = failure.what();
    for (auto& [number, group] : own.groups) group->abort();
  }
}

void FakeRanks::begin(int rank, const RandomProgram& program) {
  Rank& own = *ranks_[static_cast<std::size_t>(rank)];
  const auto place = static_cast<std::size_t>(rank);
  own.report = {};
  own.report.checksums.resize(program.op_counts[place]);
  own.launched = own.ended = 0;
  own.arena = gpu_memory(program.arena_bytes[place]);
  own.queues->begin(program.op_counts[place]);
}

void FakeRanks::issue(const RankOp& op, FaultKind* fault) {
  Rank& own = *ranks_[static_cast<std::size_t>(op.rank)];
  QueuedOp queued;
  queued.number = op.number;
  queued.waits = op.waits;
  queued.name = [&op] { return name_of(op); };
  queued.run = [this, &own, &op, fault](Queue queue) { launch(own, op, fault, queue); };
  if (op.timed) {
    queued.ended = [&own, &op](auto start, auto end) {
      own.report.ended.push_back({op.number, start, end});
    };
  }
  own.queues->issue(op.queue, std::move(queued));
}

void FakeRanks::launch(Rank& rank, const RankOp& op, FaultKind* fault, Queue queue) {
  fake::Kernel kernel = fake::Kernel::Ends;
  if (fault != nullptr) {
    if (*fault == FaultKind::Launch) throw CudaError("launch", "does not fit");
    kernel = *fault == FaultKind::Hang ? fake::Kernel::Hangs : fake::Kernel::Faults;
  }
  rank.report.most_ahead = std::max(rank.report.most_ahead,
                                    ++rank.launched - rank.ended.load(std::memory_order_relaxed));
  if (op.action != Action::Compute) exchange(rank, op, queue);
  const auto work = [&rank, &op, arena = static_cast<std::byte*>(rank.arena.get())] {
    rank.report.checksums[op.number] =
        op.action == Action::Compute ? compute(op, arena) : checksum_of_operands(op, arena);
    // Nothing but the queues may order ops.
    rank.ended.fetch_add(1, std::memory_order_relaxed);
  };
  check_cuda(fake::launch(stream_of(queue), work, kernel), "launch");
}

void FakeRanks::exchange(Rank& rank, const RankOp& op, Queue queue) {
  const auto place_of = [&](const std::vector<Part>& parts) -> std::byte* {
    return parts.empty() ? nullptr
                         : static_cast<std::byte*>(rank.arena.get()) + parts.front().offset;
  };
  std::byte* in = place_of(op.reads);
  std::byte* out = place_of(op.writes);
  const Part& part = op.reads.empty() ? op.writes.front() : op.reads.front();
  Communicator& group = *rank.groups.at(op.group);
  switch (op.action) {
    case Action::AllReduce:
      return group.all_reduce(out, part.elements, part.element, op.reduction, queue);
    case Action::AllGather:
      return group.all_gather(in, out, part.elements, part.element, queue);
    case Action::ReduceScatter:
      return group.reduce_scatter(in, out, op.writes.front().elements, part.element, queue);
    case Action::Broadcast:
      return group.broadcast(out == nullptr ? in : out, part.bytes(), op.peer, queue);
    case Action::Send:
      return group.send(in, part.bytes(), op.peer, op.channel, queue);
    default:
      return group.receive(out, part.bytes(), op.peer, op.channel, queue);
  }
}

RankReport FakeRanks::finish(int rank, const RandomProgram& program) {
  Rank& own = *ranks_[static_cast<std::size_t>(rank)];
  guarded(rank, [&] {
    own.queues->drain();
    // Reports nothing again.
    own.queues->drain();
  });
  own.report.waited = own.queues->waited();
  const auto* bytes = static_cast<const std::byte*>(own.arena.get());
  const std::size_t size =
      std::max<std::size_t>(program.arena_bytes[static_cast<std::size_t>(rank)], 1);
  if (own.report.error.empty()) own.report.arena.assign(bytes, bytes + size);
  own.arena.reset();
  return std::exchange(own.report, {});
}

std::vector<std::vector<RankReport>> FakeRanks::run(const std::vector<RandomProgram>& programs,
                                                    const std::optional<Fault>& fault) {
  std::vector<std::vector<RankReport>> reports(programs.size(),
                                               std::vector<RankReport>(ranks_.size()));
  FaultKind kind = fault ? fault->kind : FaultKind::Launch;
  const bool of_call = kind == FaultKind::CudaCall || kind == FaultKind::NcclCall;
  if (fault && of_call) {
    fake::Gpu& gpu = gpus_.gpu(programs.front().ops[fault->op].rank);
    (kind == FaultKind::CudaCall ? gpu.cuda_calls_left : gpu.nccl_calls_left) = fault->calls;
  }
  const auto issue_guarded = [&](const RandomProgram& program, const RankOp& op) {
    const bool faulty = fault && !of_call && &op == &program.ops[fault->op];
    guarded(op.rank, [&] { issue(op, faulty ? &kind : nullptr); });
  };
  const auto begin_guarded = [&](int rank, const RandomProgram& program) {
    guarded(rank, [&] { begin(rank, program); });
  };
  if (gpus_.order() == fake::Order::Threads) {
    on_each_rank([&](int rank) {
      for (std::size_t i = 0; i < programs.size(); ++i) {
        begin_guarded(rank, programs[i]);
        for (const RankOp& op : programs[i].ops) {
          if (op.rank == rank) issue_guarded(programs[i], op);
        }
        reports[i][static_cast<std::size_t>(rank)] = finish(rank, programs[i]);
      }
    });
    return reports;
  }
  // A rank with a fault comes first, since the others wait for what it does then.
  const int first = fault ? programs.front().ops[fault->op].rank : 0;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const auto on_each = [&](const auto& work) {
      for (int place = 0; place < world_.ranks; ++place) {
        const int rank = (first + place) % world_.ranks;
        use_gpu(rank);
        work(rank);
      }
    };
    on_each([&](int rank) { begin_guarded(rank, programs[i]); });
    for (const RankOp& op : programs[i].ops) {
      use_gpu(op.rank);
      issue_guarded(programs[i], op);
    }
    on_each(
        [&](int rank) { reports[i][static_cast<std::size_t>(rank)] = finish(rank, programs[i]); });
  }
  return reports;
}

Results FakeRanks::results_of(const RandomProgram& program, std::uint64_t seed) {
  gpus_.reseed(seed);
  return results_in(run({program}).front());
}

std::vector<std::string> FakeRanks::close() {
  on_each_rank([&](int rank) {
    Rank& own = *ranks_[static_cast<std::size_t>(rank)];
    own.arena.reset();
    own.queues.reset();
    own.groups.clear();
  });
  return gpus_.complaints();
}

}  // namespace shardwright::executor
