// Heartbeats: each rank regularly writes a sign of life and its activity to the store. The process
// that serves the store finds the ranks that have fallen silent.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "executor/comm/tcp_store.hpp"
#include "executor/launch/launch_place.hpp"
#include "executor/launch/rendezvous.hpp"

namespace shardwright::executor {

// Returns the interval between heartbeats of ranks that count as failed after `timeout`.
std::chrono::milliseconds heartbeat_interval(std::chrono::milliseconds timeout);

// After a failure, a rank counts as lost after this many intervals without a heartbeat.
inline constexpr int kMissedSigns = 4;

// Reports that another rank did not join in time, so that it counts as lost. (RankWatch alone
// cannot tell a rank that has never sent a heartbeat from a slow one.)
void report_absent(Store& store, std::int64_t rank);

// A thread that sends a rank's heartbeats, and at its end a notice that the rank leaves, after
// which its silence is no loss.
class Heartbeat {
 public:
  Heartbeat(std::unique_ptr<Store> store, std::int64_t rank, std::chrono::milliseconds interval);

  // `activity` describes what the rank does, in the next heartbeat, which is sent at once, and all
  // later ones; null stands for no description. When this returns, the previous function is no
  // longer called.
  void describe_activity(std::function<std::string()> activity);

 private:
  void beat(const std::stop_token& stop);

  std::unique_ptr<Store> store_;
  std::int64_t rank_;
  std::chrono::milliseconds interval_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::function<std::string()> activity_;
  bool due_ = false;
  // Ended first: it uses the members above.
  std::jthread thread_;
};

// Evaluates the heartbeats in the process that serves the store.
class RankWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // `host` names the host of ranks that have not sent a heartbeat yet.
  RankWatch(const LocalStore& store, std::int64_t world, std::string host)
      : store_(store), world_(world), host_(std::move(host)) {}

  // "rank 3 on node7, last in step 12, attention.core of layer 2, microbatch 3".
  std::string name(std::int64_t rank) const;

  // Returns the ranks without a heartbeat for `limit` and those reported as absent. Before their
  // first heartbeat, ranks have `kStart` more from the beginning of the watch.
  std::vector<std::int64_t> silent(std::chrono::milliseconds limit) const {
    return silent(limit, kStart);
  }
  // Returns the same without the extra time and without ranks that have left: the lost ranks after
  // a failure.
  std::vector<std::int64_t> lost(std::chrono::milliseconds limit) const;
  bool has_left(std::int64_t rank) const;
  // "no sign of life for 2.1 s from rank 3 on node7, last in step 12, …"; "rank 3 on node7 did not
  // join in time".
  std::string describe_silence(std::int64_t rank) const;

  static constexpr std::chrono::seconds kStart{30};

 private:
  std::vector<std::int64_t> silent(std::chrono::milliseconds limit, Clock::duration start) const;
  bool is_absent(std::int64_t rank) const;

  const LocalStore& store_;
  std::int64_t world_;
  std::string host_;
  Clock::time_point began_ = Clock::now();
};

// Lost ranks when our own launcher does not monitor them.
//
// A rank that dies breaks the connections of the others, which then break more connections, so a
// broken connection does not identify the lost rank. But a rank that fails announces that it
// leaves: after a few heartbeat intervals, the ranks that have neither left nor sent a heartbeat
// are the lost ones. The process that serves the store finds them and informs the others.

// Waits until the lost ranks are known: `kMissedSigns` intervals, and a little more in the process
// that serves the store. All failing ranks call it after their Heartbeat has ended. `watch` is null
// except in the process that serves the store. Returns one clause for each lost rank, each after ";
// ", or "" if all ranks have left.
std::string find_lost_ranks(const Rendezvous& rendezvous, const LaunchPlace& place,
                            const RankWatch* watch, std::chrono::milliseconds timeout);

// Throws RuntimeFailure if another rank has ended or has been silent for `timeout`. Used while this
// rank waits outside of collectives, which would notice it.
void check_no_rank_is_lost(const RankWatch& watch, const LaunchPlace& place,
                           std::chrono::milliseconds timeout);

}  // namespace shardwright::executor
