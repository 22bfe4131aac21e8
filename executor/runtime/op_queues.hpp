// The queues of a rank's device, to which a program's ops are issued.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/kernels/queue.hpp"

namespace shardwright::executor {

// An op on its way to a queue.
struct QueuedOp {
  using Clock = std::chrono::steady_clock;

  std::uint32_t number = 0;
  std::vector<std::uint32_t> waits;   // for these ops, issued earlier, to end
  std::function<void(Queue)> run;     // does the work, or issues it to the queue given
  std::function<std::string()> name;  // for errors
  std::function<void(Clock::time_point start, Clock::time_point end)> ended;  // null: not timed
};

// Each queue runs its ops in the order of issue, each when all that it waits for have ended.
class OpQueues {
 public:
  virtual ~OpQueues() = default;

  // Ops are numbered 0 .. ops - 1 from now on; none of them has run.
  virtual void begin(std::uint32_t ops) = 0;
  // Does not wait for the op. Queues are numbered from 0 on.
  virtual void issue(std::size_t queue, QueuedOp op) = 0;
  // Waits for all that was issued. Throws OpError for the first op that failed; none begins after
  // it.
  virtual void drain() = 0;
  // True if knowing when each op ran takes no time to speak of.
  virtual bool times_at_no_cost() const = 0;
};

// What queues ask of those who communicate.
struct QueueHooks {
  // Called once a step at most, when an op has failed: makes ops of other queues that wait for
  // peers fail.
  std::function<void()> on_failure;
  // Throws CommunicationError if an exchange that was issued has failed.
  std::function<void()> check;
};

// Makes queues 0 .. queues - 1.
using MakeQueues = std::function<std::unique_ptr<OpQueues>(std::size_t queues, QueueHooks hooks)>;

}  // namespace shardwright::executor
