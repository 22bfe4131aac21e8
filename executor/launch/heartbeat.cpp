#include "executor/launch/heartbeat.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "executor/comm/communicator.hpp"
#include "executor/comm/socket.hpp"

namespace shardwright::executor {
namespace {

std::string heartbeat_key(std::int64_t rank) {
  return fmt::format("alive.{}", rank);
}

std::string leave_key(std::int64_t rank) {
  return fmt::format("left.{}", rank);
}

std::string absent_key(std::int64_t rank) {
  return fmt::format("absent.{}", rank);
}

// A heartbeat in the store: the host in the first line, then the rank's activity.
struct Sign {
  std::string host, activity;
  RankWatch::Clock::time_point at;
};

std::optional<Sign> last_sign(const LocalStore& store, std::int64_t rank) {
  const auto entry = store.entry(heartbeat_key(rank));
  if (!entry) return std::nullopt;
  const std::size_t line = entry->value.find('\n');
  return Sign{entry->value.substr(0, line), entry->value.substr(line + 1), entry->set_at};
}

}  // namespace

std::chrono::milliseconds heartbeat_interval(std::chrono::milliseconds timeout) {
  using std::chrono::milliseconds;
  return std::clamp(timeout / 10, milliseconds(20), milliseconds(1000));
}

void report_absent(Store& store, std::int64_t rank) {
  store.set(absent_key(rank), "");
}

Heartbeat::Heartbeat(std::unique_ptr<Store> store, std::int64_t rank,
                     std::chrono::milliseconds interval)
    : store_(std::move(store)), rank_(rank), interval_(interval) {
  thread_ = std::thread([this] { beat(); });
}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Heartbeat::describe_activity(std::function<std::string()> activity) {
  const std::lock_guard lock(mutex_);
  activity_ = std::move(activity);
  due_ = true;
  changed_.notify_all();
}

void Heartbeat::beat() {
  try {
    send_signs();
    store_->set(leave_key(rank_), "");
  } catch (const CommunicationError&) {
    // The process that served the store has ended; the rank's collectives will report it.
  }
}

void Heartbeat::send_signs() {
  const std::string host = host_name();
  std::unique_lock lock(mutex_);
  while (!closing_) {
    due_ = false;
    store_->set(heartbeat_key(rank_), host + '\n' + (activity_ ? activity_() : ""));
    changed_.wait_for(lock, interval_, [this] { return closing_ || due_; });
  }
}

std::string RankWatch::name(std::int64_t rank) const {
  const auto sign = last_sign(store_, rank);
  if (!sign) return fmt::format("rank {} on {}", rank, host_);
  return fmt::format("rank {} on {}{}{}", rank, sign->host,
                     sign->activity.empty() ? "" : ", last in ", sign->activity);
}

bool RankWatch::is_absent(std::int64_t rank) const {
  return store_.entry(absent_key(rank)).has_value();
}

bool RankWatch::has_left(std::int64_t rank) const {
  return store_.entry(leave_key(rank)).has_value();
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

}  // namespace shardwright::executor
