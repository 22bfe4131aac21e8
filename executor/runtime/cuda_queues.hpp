// The queues of a rank on a GPU: a stream for each. The thread that issues an op starts its
// kernels, so it runs ahead of the device; ops wait for each other by events.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/kernels/cuda/cuda_device.hpp"
#include "executor/runtime/op_queues.hpp"

namespace shardwright::executor {

class CudaQueues final : public OpQueues {
 public:
  // Without any op ending for `timeout` while some are pending, the first of them has failed. Where
  // the device goes on with it all the same, neither memory nor streams can be given back, and
  // nobody would hear of it: `on_hang` is told what failed, and ends the process.
  CudaQueues(std::size_t queues, QueueHooks hooks, std::chrono::milliseconds timeout,
             std::function<void(const std::string&)> on_hang);
  // Waits for what runs, and calls `on_hang` if that does not end.
  ~CudaQueues() override;
  CudaQueues(const CudaQueues&) = delete;
  CudaQueues& operator=(const CudaQueues&) = delete;

  void begin(std::uint32_t ops) override;
  void issue(std::size_t queue, QueuedOp op) override;
  void drain() override;
  bool times_at_no_cost() const override { return false; }

 private:
  using Clock = QueuedOp::Clock;

  // An op whose kernels were issued and that has not been seen to end.
  struct Pending {
    std::uint32_t number = 0;
    std::function<std::string()> name;
  };
  struct Lane {
    std::optional<CudaStream> stream;  // from the first op on
    std::deque<Pending> pending;
  };
  // A timed op.
  struct Measured {
    CudaEvent start, end;
    std::function<void(Clock::time_point, Clock::time_point)> ended;
  };

  void start(Lane& lane, QueuedOp& op);
  void start_measured(Lane& lane, QueuedOp& op);
  CudaEvent& end_of(std::uint32_t op);
  CudaEvent timed_event();
  // Takes note of the ops that have ended; true if there were any.
  bool collect();
  // Waits until at most `pending` ops are left. Throws OpError.
  void wait_until(std::size_t pending);
  [[noreturn]] void fail(const std::string& op, const std::string& why);
  // Whether the streams have come to their ends, or to errors, within a few seconds.
  bool streams_end() const;
  void report_measured();

  QueueHooks hooks_;
  std::chrono::milliseconds timeout_;
  std::function<void(const std::string&)> on_hang_;
  std::vector<Lane> lanes_;
  std::vector<std::optional<CudaEvent>> ends_;  // by op; kept from step to step
  std::vector<Measured> measured_;
  std::vector<CudaEvent> spare_;  // timed ones of earlier steps: making one takes the host longer
  std::optional<CudaEvent> origin_;  // of measured times, and the host's time there
  Clock::time_point origin_time_;
  std::size_t pending_ = 0;
  bool failed_ = false;
};

}  // namespace shardwright::executor
