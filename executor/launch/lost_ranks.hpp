// Which ranks are gone, where no launcher of ours watches over them.
//
// A rank that dies breaks the connections of the others at once: that says who was talked to, not
// who is gone, since each rank that fails breaks connections in turn. But who fails takes leave
// (heartbeat.hpp), so after the time of a few signs of life the ranks that have neither taken leave
// nor given one are those that are lost. Who serves the table finds them and tells all others.
#pragma once

#include <chrono>
#include <string>

#include "executor/launch/heartbeat.hpp"
#include "executor/launch/launch_place.hpp"
#include "executor/launch/rendezvous.hpp"

namespace shardwright::executor {

// Waits until it is known who is lost, for the time of `kMissedSigns` signs and a little more where
// the table is served; all ranks that fail call it, after their Heartbeat has ended. `watch` is
// null but where the table is served. One sentence for each rank that is lost, each after "; ";
// empty if all have taken leave.
std::string find_lost_ranks(const Rendezvous& rendezvous, const LaunchPlace& place,
                            const RankWatch* watch, std::chrono::milliseconds timeout);

// Throws RuntimeFailure if another rank has ended or been silent for `timeout`: where an exchange
// would notice it, but there is none.
void check_none_is_gone(const RankWatch& watch, const LaunchPlace& place,
                        std::chrono::milliseconds timeout);

}  // namespace shardwright::executor
