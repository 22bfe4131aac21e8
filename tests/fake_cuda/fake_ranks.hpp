// The ranks of random programs, with the queues and communicators of the executor on fake GPUs.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/comm/communicator.hpp"
#include "executor/comm/tcp_store.hpp"
#include "executor/runtime/op_queues.hpp"
#include "tests/fake_cuda/fake_gpus.hpp"
#include "tests/fake_cuda/random_program.hpp"

namespace shardwright::executor {

enum class FaultKind : std::uint8_t {
  // The host cannot launch the op.
  Launch,
  // The op ends with an error of the GPU, or never.
  Kernel,
  Hang,
  // A later call of CUDA's or NCCL's fails.
  CudaCall,
  NcclCall
};

struct Fault {
  FaultKind kind = FaultKind::Launch;
  // The op by its place in the program, or the number of calls that still succeed on the rank of
  // that op.
  std::size_t op = 0;
  std::int64_t calls = 0;
};

// What a rank has seen of a program.
struct RankReport {
  struct Span {
    std::uint32_t op = 0;
    QueuedOp::Clock::time_point start, end;
  };
  std::vector<std::byte> arena;
  std::vector<std::uint64_t> checksums;
  // In the order of their reports.
  std::vector<Span> ended;
  // The most ops that were launched and had not ended.
  std::int64_t most_ahead = 0;
  QueuedOp::Clock::duration waited{};
  // What the queues threw, how often they reported a failure, and that they hang.
  std::string error, hang;
  int failures = 0;
};

std::string name_of(const RankOp& op);
Results results_in(const std::vector<RankReport>& reports);

class FakeRanks {
 public:
  FakeRanks(World world, fake::Order order, std::uint64_t seed,
            std::chrono::milliseconds timeout = std::chrono::seconds(60));

  // Runs programs one after another, each rank at its own pace if streams are threads.
  std::vector<std::vector<RankReport>> run(const std::vector<RandomProgram>& programs,
                                           const std::optional<Fault>& fault = std::nullopt);
  // Runs one program in an order that the seed chooses.
  Results results_of(const RandomProgram& program, std::uint64_t seed);

  fake::Gpus& gpus() { return gpus_; }
  const World& world() const { return world_; }
  // Releases everything and returns what is wrong then.
  std::vector<std::string> close();

 private:
  struct Rank {
    std::map<std::size_t, std::unique_ptr<Communicator>> groups;
    std::unique_ptr<OpQueues> queues;
    std::shared_ptr<void> arena;
    std::atomic<std::int64_t> ended{0};
    std::int64_t launched = 0;
    RankReport report;
  };

  void connect(int rank, std::chrono::milliseconds timeout);
  void warm_up(int rank);
  void begin(int rank, const RandomProgram& program);
  void issue(const RankOp& op, FaultKind* fault);
  void launch(Rank& rank, const RankOp& op, FaultKind* fault, Queue queue);
  void exchange(Rank& rank, const RankOp& op, Queue queue);
  RankReport finish(int rank, const RandomProgram& program);
  void guarded(int rank, const std::function<void()>& work);
  void on_each_rank(const std::function<void(int rank)>& work);

  World world_;
  fake::Gpus gpus_;
  LocalStore store_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace shardwright::executor
