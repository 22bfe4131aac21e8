// The streams of a rank on the CPU: one thread for each queue, which runs its ops in the order of
// issue; an op starts when the ops that it waits for have ended.
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

namespace shardwright::executor {

class StreamQueues {
 public:
  using Task = std::function<void()>;

  // Queues 0 .. queues - 1; each has a thread from its first op on. `on_failure` is called once, by
  // the thread whose op failed first: it should make ops of other queues that wait for peers fail.
  StreamQueues(std::size_t queues, std::function<void()> on_failure);
  // Waits for what runs; what was issued and has not begun is dropped.
  ~StreamQueues();
  StreamQueues(const StreamQueues&) = delete;
  StreamQueues& operator=(const StreamQueues&) = delete;

  // Ops are numbered 0 .. ops - 1 from now on; none of them has run.
  void begin(std::uint32_t ops);
  void issue(std::size_t queue, std::uint32_t op, std::vector<std::uint32_t> waits, Task task);
  // Waits for all that was issued. Throws what the first op that failed threw; no op begins after
  // it.
  void drain();

 private:
  struct Item {
    std::uint32_t op = 0;
    std::vector<std::uint32_t> waits;
    Task task;
  };
  struct Worker {
    std::deque<Item> items;
    std::condition_variable issued;
    std::thread thread;
  };

  void work(Worker& worker);
  bool may_start(const Item& item) const;
  void run(Item item, std::unique_lock<std::mutex>& lock);

  std::function<void()> on_failure_;
  std::mutex mutex_;
  std::condition_variable ended_;  // an op, for those that wait for it
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<bool> done_;  // by op
  std::size_t pending_ = 0;
  std::exception_ptr failure_;
  bool closing_ = false;
};

}  // namespace shardwright::executor
