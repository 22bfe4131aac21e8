#include "executor/launch/lost_ranks.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/error.hpp"
#include "executor/comm/communicator.hpp"

namespace shardwright::executor {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kLostKey = "lost";
constexpr milliseconds kLostRankPollInterval{20};
// The most by which the failures of ranks lie apart, beyond the time of the heartbeats.
constexpr milliseconds kFailureSpread{2'000};

std::string acknowledged_key(std::int64_t rank) {
  return fmt::format("acknowledged.{}", rank);
}

// Waits until `done`, at most `limit`.
template <class Done>
void wait_until(Done done, milliseconds limit) {
  const auto deadline = SteadyClock::now() + limit;
  while (!done() && SteadyClock::now() < deadline)
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
      if (watch.has_left(rank) && !local.entry(acknowledged_key(rank))) return false;
    return true;
  };
  wait_until(all_have_read, kMissedSigns * interval);
  return text;
}

std::string ask_rank_0(Store& store, std::int64_t rank, milliseconds interval) {
  std::optional<std::string> lost;
  wait_until([&] { return (lost = store.find(kLostKey)).has_value(); },
             2 * kMissedSigns * interval + kFailureSpread);
  store.set(acknowledged_key(rank), "");
  return lost.value_or("");
}

}  // namespace

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
