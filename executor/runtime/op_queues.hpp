// The queues of a rank's device, which run the program's ops.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "executor/kernels/element.hpp"

namespace shardwright::executor {

// Names the op that failed and the reason. Callers add the rank and its host.
class OpError : public std::runtime_error {
 public:
  OpError(const std::string& op, const std::string& why) : std::runtime_error(op + ": " + why) {}
};

// An op and its dependencies.
struct QueuedOp {
  using Clock = std::chrono::steady_clock;

  std::uint32_t number = 0;
  // Earlier ops that must end first.
  std::vector<std::uint32_t> waits;
  // Does the work, or launches it on the queue.
  std::function<void(Queue)> run;
  // Returns the name for error messages.
  std::function<std::string()> name;
  // Receives the times of the op; null if it is not timed.
  std::function<void(Clock::time_point start, Clock::time_point end)> ended;
};

// Each queue runs its ops in the order of issue, each after all ops that it waits for.
class OpQueues {
 public:
  virtual ~OpQueues() = default;

  // Begins a step whose ops have the numbers 0 .. ops - 1.
  virtual void begin(std::uint32_t ops) = 0;
  // Returns without waiting for the op. Queues are numbered from 0.
  virtual void issue(std::size_t queue, QueuedOp op) = 0;
  // Returns the time of this step for which `issue` waited, since the device was too far behind.
  virtual QueuedOp::Clock::duration waited() const = 0;
  // Waits for all issued ops. Throws OpError for the first op that failed, after which no further
  // op starts.
  virtual void drain() = 0;
  // True if timing ops is practically free.
  virtual bool times_at_no_cost() const = 0;
};

// Callbacks of queues to the communicators.
struct QueueHooks {
  // Called at most once per step, after an op has failed: makes waiting collectives and transfers
  // of other queues fail.
  std::function<void()> on_failure;
  // Throws CommunicationError if an issued collective or transfer has failed.
  std::function<void()> check;
};

// Makes the queues 0 .. queues - 1.
using MakeQueues = std::function<std::unique_ptr<OpQueues>(std::size_t queues, QueueHooks hooks)>;

// Makes the queues of a rank on the CPU, one thread each. Each queue starts its thread, named
// "queue 0" and so on, with its first op. The thread whose op fails first calls `hooks.on_failure`.
// At their end, the queues wait for running ops and drop those that have not started.
std::unique_ptr<OpQueues> make_stream_queues(std::size_t queues, QueueHooks hooks);

// Makes the queues of a rank on a GPU, one stream each. The issuing thread launches the kernels and
// runs ahead of the device; ops wait for each other by events.
//
// If no pending op ends within `timeout`, the first one has failed. If the device does not stop
// working on it, or on what runs when the queues end, memory and streams cannot be released:
// `on_hang` is called with the reason and must end the process.
std::unique_ptr<OpQueues> make_cuda_queues(std::size_t queues, QueueHooks hooks,
                                           std::chrono::milliseconds timeout,
                                           std::function<void(const std::string&)> on_hang);

}  // namespace shardwright::executor
