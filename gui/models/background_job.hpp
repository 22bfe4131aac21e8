// Work in the background, of which only the newest counts.
#pragma once

#include <QMetaObject>
#include <QObject>
#include <QString>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "core/base/error.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {

// One thread that works on the newest task. A new task asks the one at work to stop and takes its
// place; tasks in between are dropped. Only the destructor waits until the task at work has
// noticed.
class BackgroundTask {
 public:
  using Task = std::function<void(const std::stop_token&)>;

  BackgroundTask();
  ~BackgroundTask();
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  // A task must not throw.
  void submit(Task task);
  // Asks the task at work to stop and drops the waiting one. Returns true if one was waiting.
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

// Lets the calling thread, and those that it starts from now on, wait for the window's thread where
// there are fewer cores than work. For work that takes all cores; a thread cannot take it back.
void yield_to_the_window();

// A computation that belongs to `context`, in whose thread its newest result arrives.
template <class Result>
class BackgroundJob {
 public:
  using Compute = std::function<Result(const std::stop_token&)>;
  using Done = std::function<void(std::shared_ptr<const Result>)>;
  using Failed = std::function<void(const QString&)>;

  BackgroundJob(QObject* context, Done done, Failed failed)
      : context_(context), done_(std::move(done)), failed_(std::move(failed)) {}

  // Replaces the computation in progress.
  void start(Compute compute) {
    const std::uint64_t id = ++newest_;
    running_ = true;
    worker_.submit([this, id, compute = std::move(compute)](const std::stop_token& stop) {
      run(id, compute, stop);
    });
  }

  void cancel() {
    ++newest_;
    running_ = false;
    worker_.cancel();
  }

  bool is_running() const { return running_; }

 private:
  void run(std::uint64_t id, const Compute& compute, const std::stop_token& stop) {
    try {
      auto result = std::make_shared<const Result>(compute(stop));
      if (!stop.stop_requested()) post(id, [this, result] { done_(result); });
    } catch (const InputError& error) {
      post(id, [this, text = error_text(error)] { failed_(text); });
    } catch (const std::exception& error) {
      post(id, [this, text = to_qstring(error.what())] { failed_(text); });
    }
  }

  template <class Deliver>
  void post(std::uint64_t id, Deliver deliver) {
    QMetaObject::invokeMethod(
        context_,
        [this, id, deliver = std::move(deliver)] {
          if (id != newest_) return;
          running_ = false;
          deliver();
        },
        Qt::QueuedConnection);
  }

  QObject* context_;
  Done done_;
  Failed failed_;
  // Used in the thread of the context alone.
  std::uint64_t newest_ = 0;
  bool running_ = false;
  // The last member: its thread ends before the members that it uses.
  BackgroundTask worker_;
};

}  // namespace shardwright::gui
