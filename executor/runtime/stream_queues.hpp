// The queues of a rank on the CPU, one thread each.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "executor/runtime/op_queues.hpp"

namespace shardwright::executor {

class StreamQueues final : public OpQueues {
 public:
  // Each queue starts its thread, named "queue 0" and so on, with its first op. The thread whose op
  // fails first calls `on_failure`.
  StreamQueues(std::size_t queues, std::function<void()> on_failure);
  // Waits for running ops and drops those that have not started.
  ~StreamQueues() override;
  StreamQueues(const StreamQueues&) = delete;
  StreamQueues& operator=(const StreamQueues&) = delete;

  void begin(std::uint32_t ops) override;
  void issue(std::size_t queue, QueuedOp op) override;
  void drain() override;
  bool times_at_no_cost() const override { return true; }

 private:
  struct Worker {
    std::deque<QueuedOp> items;
    std::condition_variable issued;
    std::thread thread;
  };

  void work(Worker& worker);
  bool may_start(const QueuedOp& op) const;
  void run(const QueuedOp& op, std::unique_lock<std::mutex>& lock);

  std::function<void()> on_failure_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<bool> done_;
  std::size_t pending_ = 0;
  std::exception_ptr failure_;
  bool closing_ = false;
};

std::unique_ptr<OpQueues> make_stream_queues(std::size_t queues, QueueHooks hooks);

}  // namespace shardwright::executor
