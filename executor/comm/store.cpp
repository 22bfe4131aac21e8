#include "executor/comm/store.hpp"

#include "executor/comm/communicator.hpp"

namespace shardwright::executor {

void LocalStore::set(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  entries_[key] = {value, std::chrono::steady_clock::now()};
  changed_.notify_all();
}

std::string LocalStore::get(const std::string& key, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  const bool there =
      changed_.wait_for(lock, timeout, [&] { return entries_.find(key) != entries_.end(); });
  if (!there) throw CommunicationError("timed out waiting for \"" + key + "\"");
  return entries_[key].value;
}

std::optional<std::string> LocalStore::find(const std::string& key) {
  const auto found = entry(key);
  return found ? std::optional(found->value) : std::nullopt;
}

std::optional<LocalStore::Entry> LocalStore::entry(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  return found == entries_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace shardwright::executor
