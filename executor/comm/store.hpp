// Key-value stores through which the ranks of a run find each other.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace shardwright::executor {

class Store {
 public:
  virtual ~Store() = default;

  virtual void set(const std::string& key, const std::string& value) = 0;
  // Waits until the key is set. Throws CommunicationError after `timeout`.
  virtual std::string get(const std::string& key, std::chrono::milliseconds timeout) = 0;
  // Returns the value if the key is set or will be within a moment. Throws CommunicationError if
  // the store cannot be reached.
  virtual std::optional<std::string> find(const std::string& key) = 0;
};

// A store within one process: for ranks that are threads, and as the content of a server.
class LocalStore final : public Store {
 public:
  struct Entry {
    std::string value;
    std::chrono::steady_clock::time_point set_at;
  };

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override;
  std::optional<std::string> find(const std::string& key) override;
  // Returns the current entry.
  std::optional<Entry> entry(const std::string& key) const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Entry> entries_;
};

}  // namespace shardwright::executor
