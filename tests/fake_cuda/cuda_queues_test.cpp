// The queues of a GPU and NCCL's communicators on fake GPUs: whatever order the streams take, ops
// give the results of the order of issue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "executor/comm/nccl_communicator.hpp"
#include "executor/kernels/cuda/cuda_device.hpp"
#include "tests/fake_cuda/fake_ranks.hpp"

namespace shardwright::executor {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

// Programs of the ordinary suite; SHARDWRIGHT_PROGRAMS sets another number.
int programs_of_suite(int usual) {
  const char* wanted = std::getenv("SHARDWRIGHT_PROGRAMS");
  return wanted == nullptr ? usual : std::atoi(wanted);
}

// Timed ops are reported once, in the order of issue, and with times that follow queues and waits.
void expect_times(const RandomProgram& program, int rank, const RankReport& report) {
  std::map<std::uint32_t, RankReport::Span> spans;
  std::map<std::size_t, QueuedOp::Clock::time_point> of_queue;
  std::size_t reported = 0;
  for (const RankOp& op : program.ops) {
    if (op.rank != rank || !op.timed) continue;
    ASSERT_LT(reported, report.ended.size()) << name_of(op);
    const RankReport::Span& span = report.ended[reported++];
    ASSERT_EQ(span.op, op.number);
    EXPECT_LE(span.start, span.end) << name_of(op);
    EXPECT_GE(span.start, of_queue[op.queue]) << name_of(op);
    of_queue[op.queue] = span.end;
    for (const std::uint32_t on : op.waits) {
      if (!spans.contains(on)) continue;
      EXPECT_GE(span.start, spans[on].end) << name_of(op);
    }
    spans[op.number] = span;
  }
  EXPECT_EQ(reported, report.ended.size());
}

// A stream of kernels blocks the host at about a thousand; the queues stay below.
constexpr std::int64_t kMostAhead = 257;

class CudaQueues : public testing::TestWithParam<fake::Order> {};

TEST_P(CudaQueues, GiveTheResultsOfTheOrderOfIssue) {
  constexpr int kBatch = 20, kBetweenLong = 200;
  std::mt19937_64 random(31);
  const int programs = programs_of_suite(400);
  for (int done = 0; done < programs; done += kBatch) {
    const World world = random_world(random);
    FakeRanks ranks(world, GetParam(), random());
    std::vector<RandomProgram> batch;
    for (int i = 0; i < kBatch; ++i) {
      const bool is_long = (done + i) % kBetweenLong == 0;
      batch.push_back(
          random_program(world, is_long ? 1200 : 1 + static_cast<int>(random() % 40), random));
    }
    const auto reports = ranks.run(batch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      for (int rank = 0; rank < world.ranks; ++rank) {
        const RankReport& report = reports[i][static_cast<std::size_t>(rank)];
        ASSERT_EQ(report.error, "");
        EXPECT_LE(report.most_ahead, kMostAhead);
        EXPECT_TRUE(report.most_ahead < kMostAhead || report.waited > 0s);
        expect_times(batch[i], rank, report);
      }
      ASSERT_EQ(results_in(reports[i]), run_in_order(world, batch[i])) << "program " << done + i;
    }
    ASSERT_THAT(ranks.close(), IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, CudaQueues,
                         testing::Values(fake::Order::Seeded, fake::Order::Threads),
                         [](const auto& order) {
                           return order.param == fake::Order::Seeded ? "Seeded" : "Threads";
                         });

// Each wait without which two ops may use the same memory at once is taken away once.
TEST(MissingWait, ChangesTheResults) {
  std::mt19937_64 random(32);
  int needed = 0, all = 0;
  std::uint64_t most_seeds = 0;
  for (int i = 0; i < programs_of_suite(60); ++i) {
    World world = random_world(random);
    world.queues = std::max<std::size_t>(world.queues, 2);
    RandomProgram program = random_program(world, 5 + static_cast<int>(random() % 20), random);
    // The host waits at the first timed op.
    for (RankOp& op : program.ops) op.timed = false;
    ASSERT_FALSE(has_race(world, program));
    const Results expected = run_in_order(world, program);
    FakeRanks ranks(world, fake::Order::Seeded, random());
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      for (std::size_t wait = 0; wait < program.ops[op].waits.size(); ++wait, ++all) {
        RandomProgram mutant = program;
        auto& waits = mutant.ops[op].waits;
        waits.erase(waits.begin() + static_cast<std::ptrdiff_t>(wait));
        if (!has_race(world, mutant)) continue;
        ++needed;
        constexpr std::uint64_t kMostSeeds = 1000;
        std::uint64_t seed = 0;
        while (seed < kMostSeeds && ranks.results_of(mutant, seed) == expected) ++seed;
        EXPECT_LT(seed, kMostSeeds) << name_of(program.ops[op]) << " without its wait " << wait;
        most_seeds = std::max(most_seeds, seed);
      }
    }
    ASSERT_THAT(ranks.close(), IsEmpty());
  }
  RecordProperty("waits", all);
  RecordProperty("needed", needed);
  RecordProperty("most_seeds", static_cast<int>(most_seeds));
  EXPECT_GT(needed, 0);
}

Fault random_fault(const RandomProgram& program, std::mt19937_64& random) {
  constexpr std::array kKinds{FaultKind::Launch, FaultKind::Kernel, FaultKind::CudaCall,
                              FaultKind::NcclCall};
  return {kKinds.at(random() % kKinds.size()), random() % program.ops.size(),
          static_cast<std::int64_t>(random() % 300)};
}

bool names_op_of(const RandomProgram& program, int rank, const std::string& error) {
  if (error.starts_with("the times of the ops: ")) return true;
  return std::any_of(program.ops.begin(), program.ops.end(), [&](const RankOp& op) {
    return op.rank == rank && error.starts_with(name_of(op) + ": ");
  });
}

// The rank with a fault ends with an error that names one of its ops. The others end with an error
// too, or have what they should.
TEST_P(CudaQueues, EndEachRankAfterAFault) {
  std::mt19937_64 random(33);
  for (int i = 0; i < programs_of_suite(150); ++i) {
    const World world = random_world(random);
    const RandomProgram program =
        random_program(world, 5 + static_cast<int>(random() % 40), random);
    const Results expected = run_in_order(world, program);
    FakeRanks ranks(world, GetParam(), random());
    const Fault fault = random_fault(program, random);
    const RankOp& at = program.ops[fault.op];
    const std::vector<RankReport> reports = ranks.run({program}, fault).front();
    for (int rank = 0; rank < world.ranks; ++rank) {
      const auto place = static_cast<std::size_t>(rank);
      const RankReport& report = reports[place];
      EXPECT_EQ(report.hang, "");
      if (report.error.empty()) {
        EXPECT_EQ(report.arena, expected.arenas[place]);
        EXPECT_EQ(report.checksums, expected.checksums[place]);
        EXPECT_EQ(report.failures, 0);
        continue;
      }
      const bool in_op = names_op_of(program, rank, report.error);
      EXPECT_TRUE(in_op || report.error.starts_with("cudaMalloc: ")) << report.error;
      EXPECT_EQ(report.failures, in_op ? 1 : 0);
    }
    const std::string& error = reports[static_cast<std::size_t>(at.rank)].error;
    if (fault.kind == FaultKind::Launch) {
      EXPECT_EQ(error, name_of(at) + ": launch: does not fit");
    } else if (fault.kind == FaultKind::Kernel) {
      EXPECT_THAT(error,
                  AnyOf(HasSubstr("illegal memory access"), HasSubstr("unhandled cuda error")));
    }
    ASSERT_THAT(ranks.close(), IsEmpty());
  }
}

// Two ranks that compute something and sum it, then compute on another queue, and then time an op.
RandomProgram summing_program() {
  const std::vector<Part> sum{{0, 4, Element::Float32}}, other{{16, 4, Element::Float32}};
  RandomProgram program;
  for (std::uint32_t number = 0; number < 4; ++number) {
    for (int rank = 0; rank < 2; ++rank) {
      RankOp op;
      op.rank = rank;
      op.number = number;
      op.writes = number == 2 ? other : sum;
      if (number == 1) {
        op.action = Action::AllReduce;
        op.exchange = 1;
        op.reads = sum;
      } else if (number == 2) {
        op.queue = 1;
        op.waits = {1};
      }
      op.timed = number == 3;
      program.ops.push_back(op);
    }
  }
  program.arena_bytes = {32, 32};
  program.op_counts = {4, 4};
  return program;
}

TEST_P(CudaQueues, NameTheOpThatWaitsForALostRank) {
  FakeRanks ranks({2, 2, {{0, 1}}}, GetParam(), 1, 300ms);
  ranks.gpus().report_aborts(false);
  const auto reports = ranks.run({summing_program()}, Fault{FaultKind::Launch, 3}).front();
  EXPECT_EQ(reports[0].error, "all_reduce 1 of rank 0: did not end within 0.3 s");
  EXPECT_EQ(reports[0].hang, "");
  EXPECT_EQ(reports[1].error, "all_reduce 1 of rank 1: launch: does not fit");
  EXPECT_THAT(ranks.close(), IsEmpty());
}

TEST_P(CudaQueues, WaitForTheirWorkAtTheirEnd) {
  fake::Gpus gpus(1, GetParam(), 1);
  use_gpu(0);
  bool ran = false;
  {
    const auto queues = make_cuda_queues(1, {}, 60s, nullptr);
    QueuedOp op;
    op.run = [&](Queue queue) {
      check_cuda(fake::launch(stream_of(queue), [&ran] { ran = true; }), "launch");
    };
    queues->begin(1);
    queues->issue(0, std::move(op));
  }
  EXPECT_TRUE(ran);
  EXPECT_THAT(gpus.complaints(), IsEmpty());
}

TEST(CudaQueuesThatHang, SayWhatTheProcessEndsFor) {
  FakeRanks ranks({2, 2, {{0, 1}}}, fake::Order::Threads, 1, 300ms);
  const auto reports = ranks.run({summing_program()}, Fault{FaultKind::Hang, 1}).front();
  EXPECT_EQ(reports[1].error, "compute 0 of rank 1: did not end within 0.3 s");
  EXPECT_EQ(reports[1].hang, reports[1].error + "; the GPU does not finish its work");
  EXPECT_THAT(ranks.close(), IsEmpty());
}

TEST(NcclCommunicator, IsReleasedIfAMemberDoesNotJoin) {
  fake::Gpus gpus(1, fake::Order::Seeded, 1);
  use_gpu(0);
  LocalStore store;
  try {
    connect_nccl(store, "all", 0, 2, 50ms);
    ADD_FAILURE();
  } catch (const CommunicationError& error) {
    EXPECT_STREQ(error.what(),
                 "ncclCommInitRank of nccl/all: the other members did not join in time");
  }
  EXPECT_THAT(gpus.complaints(), IsEmpty());
}

}  // namespace
}  // namespace shardwright::executor
