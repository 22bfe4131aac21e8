#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "executor/runtime/op_queues.hpp"

namespace shardwright::executor {
namespace {

void run_timed(const QueuedOp& op) {
  const auto start = QueuedOp::Clock::now();
  try {
    op.run(nullptr);
  } catch (const std::exception& error) {
    throw OpError(op.name(), error.what());
  }
  if (op.ended) op.ended(start, QueuedOp::Clock::now());
}

class StreamQueues final : public OpQueues {
 public:
  StreamQueues(std::size_t queues, std::function<void()> on_failure)
      : on_failure_(std::move(on_failure)), workers_(queues) {}

  ~StreamQueues() override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
      ended_.notify_all();
      for (const auto& worker : workers_) {
        if (worker) worker->issued.notify_all();
      }
    }
    for (const auto& worker : workers_) {
      if (worker) worker->thread.join();
    }
  }
  StreamQueues(const StreamQueues&) = delete;
  StreamQueues& operator=(const StreamQueues&) = delete;

  void begin(std::uint32_t ops) override {
    const std::lock_guard lock(mutex_);
    done_.assign(ops, false);
  }

  void issue(std::size_t queue, QueuedOp op) override {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Worker>& worker = workers_[queue];
    if (!worker) {
      worker = std::make_unique<Worker>();
      worker->thread = std::thread([this, &here = *worker] { work(here); });
      // The name that top, gdb and bench/closed_loop show.
      pthread_setname_np(worker->thread.native_handle(),
                         ("queue " + std::to_string(queue)).c_str());
    }
    worker->items.push_back(std::move(op));
    ++pending_;
    worker->issued.notify_one();
  }

  void drain() override {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return pending_ == 0; });
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  QueuedOp::Clock::duration waited() const override { return {}; }

  bool times_at_no_cost() const override { return true; }

 private:
  struct Worker {
    std::deque<QueuedOp> items;
    std::condition_variable issued;
    std::thread thread;
  };

  void work(Worker& worker) {
    std::unique_lock lock(mutex_);
    while (true) {
      worker.issued.wait(lock, [&] { return closing_ || !worker.items.empty(); });
      if (closing_) return;
      const QueuedOp op = std::move(worker.items.front());
      worker.items.pop_front();
      ended_.wait(lock, [&] { return closing_ || failure_ || may_start(op); });
      if (closing_) return;
      run(op, lock);
    }
  }

  bool may_start(const QueuedOp& op) const {
    return std::all_of(op.waits.begin(), op.waits.end(),
                       [this](std::uint32_t on) { return done_[on]; });
  }

  void run(const QueuedOp& op, std::unique_lock<std::mutex>& lock) {
    if (!failure_) {
      lock.unlock();
      std::exception_ptr failure;
      try {
        run_timed(op);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      if (failure && !failure_) {
        failure_ = failure;
        lock.unlock();
        on_failure_();
        lock.lock();
      }
    }
    done_[op.number] = true;
    --pending_;
    ended_.notify_all();
  }

  std::function<void()> on_failure_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<bool> done_;
  std::size_t pending_ = 0;
  std::exception_ptr failure_;
  bool closing_ = false;
};

}  // namespace

std::unique_ptr<OpQueues> make_stream_queues(std::size_t queues, QueueHooks hooks) {
  return std::make_unique<StreamQueues>(queues, std::move(hooks.on_failure));
}

}  // namespace shardwright::executor
