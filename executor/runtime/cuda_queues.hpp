// The queues of a rank on a GPU, one stream each. The issuing thread launches the kernels and runs
// ahead of the device; ops wait for each other by events.
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
  // If no pending op ends within `timeout`, the first one has failed. If the device does not stop
  // working on it, memory and streams cannot be released: `on_hang` is called with the reason and
  // must end the process.
  CudaQueues(std::size_t queues, QueueHooks hooks, std::chrono::milliseconds timeout,
             std::function<void(const std::string&)> on_hang);
  // Waits for running work and calls `on_hang` if it does not end.
  ~CudaQueues() override;
  CudaQueues(const CudaQueues&) = delete;
  CudaQueues& operator=(const CudaQueues&) = delete;

  void begin(std::uint32_t ops) override;
  void issue(std::size_t queue, QueuedOp op) override;
  void drain() override;
  bool times_at_no_cost() const override { return false; }

 private:
  using Clock = QueuedOp::Clock;

  // An op whose kernels were launched and that is not known to have ended.
  struct Pending {
    std::uint32_t number = 0;
    std::function<std::string()> name;
  };
  struct Lane {
    std::optional<CudaStream> stream;
    std::deque<Pending> pending;
  };
  struct Measured {
    CudaEvent start, end;
    std::function<void(Clock::time_point, Clock::time_point)> ended;
  };

  void start(Lane& lane, QueuedOp& op);
  void start_measured(Lane& lane, QueuedOp& op);
  CudaEvent& end_of(std::uint32_t op);
  CudaEvent timed_event();
  // Removes ended ops from the pending ones; returns true if there were any.
  bool collect();
  // Waits until at most `pending` ops are pending. Throws OpError.
  void wait_until(std::size_t pending);
  [[noreturn]] void fail(const std::string& op, const std::string& why);
  // True if the streams finish, or fail, within a few seconds.
  bool streams_end() const;
  void report_measured();

  QueueHooks hooks_;
  std::chrono::milliseconds timeout_;
  std::function<void(const std::string&)> on_hang_;
  std::vector<Lane> lanes_;
  // Events by op, reused in each step.
  std::vector<std::optional<CudaEvent>> ends_;
  std::vector<Measured> measured_;
  // Timed events of earlier steps, for reuse: creating one takes the host longer.
  std::vector<CudaEvent> spare_;
  // The origin of measured times, and the host's time at it.
  std::optional<CudaEvent> origin_;
  Clock::time_point origin_time_;
  std::size_t pending_ = 0;
  bool failed_ = false;
};

}  // namespace shardwright::executor
