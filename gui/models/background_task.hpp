// One background thread that works on the newest request only.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace shardwright::gui {

// A new task asks the one at work to stop and takes its place; tasks in between are dropped. The
// caller never waits, but for the destructor, which waits until the task at work has noticed.
class BackgroundTask {
 public:
  using Task = std::function<void(const std::stop_token&)>;

  BackgroundTask();
  ~BackgroundTask();
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  // A task must not throw.
  void submit(Task task);
  // Asks the task at work to stop and drops the one that waits; true if one did.
  bool cancel();

 private:
  void work();
  std::optional<Task> next();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<Task> waiting_;
  std::stop_source running_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace shardwright::gui
