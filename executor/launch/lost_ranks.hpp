// Finds lost ranks when our own launcher does not monitor them.
//
// A rank that dies breaks the connections of the others, which then break more connections, so a
// broken connection does not identify the lost rank. But a rank that fails announces that it leaves
// (heartbeat.hpp): after a few heartbeat intervals, the ranks that have neither left nor sent a
// heartbeat are the lost ones. The process that serves the store finds them and informs the others.
#pragma once

#include <chrono>
#include <string>

#include "executor/launch/heartbeat.hpp"
#include "executor/launch/launch_place.hpp"
#include "executor/launch/rendezvous.hpp"

namespace shardwright::executor {

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
