#include "executor/comm/store.hpp"

#include "executor/comm/communicator.hpp"

namespace shardwright::executor {

void LocalStore::set(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  values_[key] = value;
  changed_.notify_all();
}

std::string LocalStore::get(const std::string& key, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  const bool there =
      changed_.wait_for(lock, timeout, [&] { return values_.find(key) != values_.end(); });
  if (!there) throw CommunicationError("nobody set \"" + key + "\" in time");
  return values_[key];
}

}  // namespace shardwright::executor
