#include "executor/runtime/stream_queues.hpp"

#include <algorithm>
#include <utility>

namespace shardwright::executor {

StreamQueues::StreamQueues(std::size_t queues, std::function<void()> on_failure)
    : on_failure_(std::move(on_failure)), workers_(queues) {}

StreamQueues::~StreamQueues() {
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

void StreamQueues::begin(std::uint32_t ops) {
  const std::lock_guard lock(mutex_);
  done_.assign(ops, false);
}

void StreamQueues::issue(std::size_t queue, std::uint32_t op, std::vector<std::uint32_t> waits,
                         Task task) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Worker>& worker = workers_[queue];
  if (!worker) {
    worker = std::make_unique<Worker>();
    worker->thread = std::thread([this, &here = *worker] { work(here); });
  }
  worker->items.push_back({op, std::move(waits), std::move(task)});
  ++pending_;
  worker->issued.notify_one();
}

void StreamQueues::drain() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return pending_ == 0; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void StreamQueues::work(Worker& worker) {
  std::unique_lock lock(mutex_);
  while (true) {
    worker.issued.wait(lock, [&] { return closing_ || !worker.items.empty(); });
    if (closing_) return;
    Item item = std::move(worker.items.front());
    worker.items.pop_front();
    ended_.wait(lock, [&] { return closing_ || failure_ || may_start(item); });
    if (closing_) return;
    run(std::move(item), lock);
  }
}

bool StreamQueues::may_start(const Item& item) const {
  return std::all_of(item.waits.begin(), item.waits.end(),
                     [this](std::uint32_t on) { return done_[on]; });
}

void StreamQueues::run(Item item, std::unique_lock<std::mutex>& lock) {
  const std::uint32_t op = item.op;
  if (!failure_) {
    lock.unlock();
    std::exception_ptr failure;
    try {
      item.task();
    } catch (...) {
      failure = std::current_exception();
    }
    item.task = nullptr;  // gives the op's tensors back
    lock.lock();
    if (failure && !failure_) {
      failure_ = failure;
      lock.unlock();
      on_failure_();
      lock.lock();
    }
  }
  done_[op] = true;
  --pending_;
  ended_.notify_all();
}

}  // namespace shardwright::executor
