#include "gui/models/background_job.hpp"

#include <utility>

#ifdef __linux__
#include <sys/resource.h>
#include <unistd.h>
#endif

namespace shardwright::gui {

void yield_to_the_window() {
#ifdef __linux__
  // Linux has a priority for each thread, which its threads inherit.
  constexpr int kNice = 10;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
#endif
}

BackgroundTask::BackgroundTask() : thread_([this] { work(); }) {}

BackgroundTask::~BackgroundTask() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    waiting_.reset();
    running_.request_stop();
  }
  wake_.notify_one();
  thread_.join();
}

void BackgroundTask::submit(Task task) {
  {
    const std::lock_guard lock(mutex_);
    waiting_ = std::move(task);
    running_.request_stop();
  }
  wake_.notify_one();
}

bool BackgroundTask::cancel() {
  const std::lock_guard lock(mutex_);
  const bool waited = std::exchange(waiting_, std::nullopt).has_value();
  running_.request_stop();
  return waited;
}

std::optional<BackgroundTask::Task> BackgroundTask::next() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return ending_ || waiting_.has_value(); });
  if (ending_) return std::nullopt;
  running_ = std::stop_source();
  return std::exchange(waiting_, std::nullopt);
}

void BackgroundTask::work() {
  while (const auto task = next()) (*task)(running_.get_token());
}

}  // namespace shardwright::gui
