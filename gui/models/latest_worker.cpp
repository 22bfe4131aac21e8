#include "gui/models/latest_worker.hpp"

#include <utility>

namespace shardwright::gui {

LatestWorker::LatestWorker() : thread_([this] { work(); }) {}

LatestWorker::~LatestWorker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    waiting_.reset();
    running_.request_stop();
  }
  wake_.notify_one();
  thread_.join();
}

void LatestWorker::submit(Task task) {
  {
    const std::lock_guard lock(mutex_);
    waiting_ = std::move(task);
    running_.request_stop();
  }
  wake_.notify_one();
}

bool LatestWorker::cancel() {
  const std::lock_guard lock(mutex_);
  const bool waited = std::exchange(waiting_, std::nullopt).has_value();
  running_.request_stop();
  return waited;
}

std::optional<LatestWorker::Task> LatestWorker::next() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return ending_ || waiting_.has_value(); });
  if (ending_) return std::nullopt;
  running_ = std::stop_source();
  return std::exchange(waiting_, std::nullopt);
}

void LatestWorker::work() {
  while (const auto task = next()) (*task)(running_.get_token());
}

}  // namespace shardwright::gui
