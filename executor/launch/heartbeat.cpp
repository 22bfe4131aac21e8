#include "executor/launch/heartbeat.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/base/error.hpp"
#include "executor/comm/communicator.hpp"
#include "executor/comm/socket.hpp"

namespace shardwright::executor {
namespace {

using std::chrono::milliseconds;

// Entries of the store, one for each rank.
constexpr const char *kAlive = "alive", *kLeft = "left", *kAbsent = "absent",
                     *kAcknowledged = "acknowledged";

std::string rank_key(const char* entry, std::int64_t rank) {
  return fmt::format("{}.{}", entry, rank);
}

// A heartbeat in the store: the host in the first line, then the rank's activity.
struct Sign {
  std::string host, activity;
  RankWatch::Clock::time_point at;
};

std::optional<Sign> last_sign(const LocalStore& store, std::int64_t rank) {
  const auto entry = store.entry(rank_key(kAlive, rank));
  if (!entry) return std::nullopt;
  const std::size_t line = entry->value.find('\n');
  return Sign{entry->value.substr(0, line), entry->value.substr(line + 1), entry->set_at};
}

constexpr const char* kLostKey = "lost";
constexpr milliseconds kLostRankPollInterval{20};
// The most by which the failures of ranks lie apart, beyond the time of the heartbeats.
constexpr milliseconds kFailureSpread{2'000};

// Waits until `done`, at most `limit`.
template <class Done>
void wait_until(Done done, milliseconds limit) {
  const auto deadline = RankWatch::Clock::now() + limit;
  while (!done() && RankWatch::Clock::now() < deadline)
    std::this_thread::sleep_for(kLostRankPollInterval);
}

// Finds the lost ranks in the process that serves the store and publishes them.
std::string find_and_publish(Store& store, const RankWatch& watch, const LocalStore& local,
                             std::int64_t world, milliseconds interval) {
  const milliseconds limit = kMissedSigns * interval;
  std::vector<std::int64_t> lost;
  const auto all_are_known = [&] {
    lost = watch.lost(limit);
    auto known = static_cast<std::int64_t>(lost.size());
    for (std::int64_t rank = 0; rank < world; ++rank) known += watch.has_left(rank) ? 1 : 0;
    return known == world;
  };
  wait_until(all_are_known, limit + 2 * interval);
  std::string text;
  for (const std::int64_t rank : lost) text += "; " + watch.describe_silence(rank);
  store.set(kLostKey, text);
  // The store ends with this process: wait until the others have read it.
  const auto all_have_read = [&] {
    for (std::int64_t rank = 1; rank < world; ++rank)
      if (watch.has_left(rank) && !local.entry(rank_key(kAcknowledged, rank))) return false;
    return true;
  };
  wait_until(all_have_read, kMissedSigns * interval);
  return text;
}

std::string ask_rank_0(Store& store, std::int64_t rank, milliseconds interval) {
  std::optional<std::string> lost;
  wait_until([&] { return (lost = store.find(kLostKey)).has_value(); },
             2 * kMissedSigns * interval + kFailureSpread);
  store.set(rank_key(kAcknowledged, rank), "");
  return lost.value_or("");
}

}  // namespace

std::chrono::milliseconds heartbeat_interval(std::chrono::milliseconds timeout) {
  return std::clamp(timeout / 10, milliseconds(20), milliseconds(1000));
}

void report_absent(Store& store, std::int64_t rank) {
  store.set(rank_key(kAbsent, rank), "");
}

Heartbeat::Heartbeat(std::unique_ptr<Store> store, std::int64_t rank,
                     std::chrono::milliseconds interval)
    : store_(std::move(store)), rank_(rank), interval_(interval) {
  thread_ = std::jthread([this](const std::stop_token& stop) { beat(stop); });
}

void Heartbeat::describe_activity(std::function<std::string()> activity) {
  const std::lock_guard lock(mutex_);
  activity_ = std::move(activity);
  due_ = true;
  changed_.notify_all();
}

void Heartbeat::beat(const std::stop_token& stop) {
  const std::string host = host_name();
  std::unique_lock lock(mutex_);
  try {
    while (!stop.stop_requested()) {
      due_ = false;
      store_->set(rank_key(kAlive, rank_), host + '\n' + (activity_ ? activity_() : ""));
      changed_.wait_for(lock, stop, interval_, [this] { return due_; });
    }
    store_->set(rank_key(kLeft, rank_), "");
  } catch (const CommunicationError&) {
    // The process that served the store has ended; the rank's collectives will report it.
  }
}

std::string RankWatch::name(std::int64_t rank) const {
  const auto sign = last_sign(store_, rank);
  if (!sign) return fmt::format("rank {} on {}", rank, host_);
  return fmt::format("rank {} on {}{}{}", rank, sign->host,
                     sign->activity.empty() ? "" : ", last in ", sign->activity);
}

bool RankWatch::is_absent(std::int64_t rank) const {
  return store_.entry(rank_key(kAbsent, rank)).has_value();
}

bool RankWatch::has_left(std::int64_t rank) const {
  return store_.entry(rank_key(kLeft, rank)).has_value();
}

std::vector<std::int64_t> RankWatch::lost(std::chrono::milliseconds limit) const {
  std::vector<std::int64_t> found = silent(limit, Clock::duration::zero());
  std::erase_if(found, [this](std::int64_t rank) { return has_left(rank); });
  return found;
}

std::vector<std::int64_t> RankWatch::silent(std::chrono::milliseconds limit,
                                            Clock::duration start) const {
  const Clock::time_point now = Clock::now();
  std::vector<std::int64_t> found;
  for (std::int64_t rank = 0; rank < world_; ++rank) {
    const auto sign = last_sign(store_, rank);
    const bool is_late = now - (sign ? sign->at : began_ + start) > limit;
    if (is_late || is_absent(rank)) found.push_back(rank);
  }
  return found;
}

std::string RankWatch::describe_silence(std::int64_t rank) const {
  if (is_absent(rank)) return name(rank) + " did not join in time";
  const auto sign = last_sign(store_, rank);
  const std::chrono::duration<double> silence = Clock::now() - (sign ? sign->at : began_);
  return fmt::format("no sign of life for {:.1f} s from {}", silence.count(), name(rank));
}

std::string find_lost_ranks(const Rendezvous& rendezvous, const LaunchPlace& place,
                            const RankWatch* watch, milliseconds timeout) {
  const milliseconds interval = heartbeat_interval(timeout);
  try {
    const std::unique_ptr<Store> store = rendezvous.connect(kMissedSigns * interval);
    if (watch == nullptr) return ask_rank_0(*store, place.rank, interval);
    return find_and_publish(*store, *watch, *rendezvous.local_store(), place.world, interval);
  } catch (const CommunicationError&) {
    if (watch != nullptr) return "";
    return fmt::format("; rank 0 at {}:{}, which serves the rendezvous, does not answer",
                       place.master_address, place.master_port);
  }
}

void check_no_rank_is_lost(const RankWatch& watch, const LaunchPlace& place, milliseconds timeout) {
  for (std::int64_t rank = 0; rank < place.world; ++rank)
    if (rank != place.rank && watch.has_left(rank)) throw RuntimeFailure("another rank has ended");
  if (!watch.lost(timeout).empty()) throw RuntimeFailure("another rank is silent");
}

}  // namespace shardwright::executor
