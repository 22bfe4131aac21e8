// Signs of life: each rank says every now and then that it is there, and what it is doing; who
// serves the table of the rendezvous sees which ranks have fallen silent.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "executor/comm/store.hpp"

namespace shardwright::executor {

// Between two signs of a rank that has failed after `timeout` without one.
std::chrono::milliseconds heartbeat_interval(std::chrono::milliseconds timeout);

// So many intervals without a sign are a silence, where one is looked for after a failure.
inline constexpr int kMissedSigns = 4;

// Says of another rank that it did not join in time, so that who watches counts it as lost: who has
// never given a sign may as well be slow, but for those who waited for it.
void report_absent(Store& store, std::int64_t rank);

// A rank's side: a thread that sends the signs, and takes leave when it ends: the silence that
// follows is no loss.
class Heartbeat {
 public:
  Heartbeat(std::unique_ptr<Store> store, std::int64_t rank, std::chrono::milliseconds interval);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // `doing` says what the rank is at, in the next sign, which goes out at once, and in all that
  // follow; null: nothing to say. When this returns the earlier function is no longer called.
  void describe_with(std::function<std::string()> doing);

 private:
  void beat();
  void send_signs();

  std::unique_ptr<Store> store_;
  std::int64_t rank_;
  std::chrono::milliseconds interval_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<std::string()> doing_;
  bool closing_ = false, due_ = false;
  std::thread thread_;
};

// The table's side.
class RankWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // `host`: of ranks that have not given a sign yet.
  RankWatch(const LocalStore& table, std::int64_t world, std::string host)
      : table_(table), world_(world), host_(std::move(host)) {}

  // "rank 3 on node7, last in step 12, attention.core of layer 2, microbatch 3".
  std::string name(std::int64_t rank) const;

  // The ranks without a sign for `limit`, and those that were waited for in vain; before the first
  // sign a rank has `kStart` more, from when the watch began.
  std::vector<std::int64_t> silent(std::chrono::milliseconds limit) const {
    return silent(limit, kStart);
  }
  // Of those, without the time to start, the ranks that have not taken leave: what is gone where a
  // rank has failed.
  std::vector<std::int64_t> lost(std::chrono::milliseconds limit) const;
  bool has_left(std::int64_t rank) const;
  // "no sign of life for 2.1 s of rank 3 on node7, last in step 12, …"; "rank 3 on node7 did not
  // join in time".
  std::string describe_silence(std::int64_t rank) const;

  static constexpr std::chrono::seconds kStart{30};

 private:
  std::vector<std::int64_t> silent(std::chrono::milliseconds limit, Clock::duration start) const;
  bool is_absent(std::int64_t rank) const;

  const LocalStore& table_;
  std::int64_t world_;
  std::string host_;
  Clock::time_point began_ = Clock::now();
};

}  // namespace shardwright::executor
