// Starts the ranks of a run as processes of this machine and watches over them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace shardwright::executor {

// Runs this program once for each of `world` ranks, with the same arguments, and waits for them.
// They meet at a rendezvous of this process, at the loopback address. When one fails the others are
// told to stop, and killed if they have not stopped after `grace`; none outlives the launcher.
// Returns the exit status of the rank that failed first, or 0.
int launch_ranks(std::int64_t world, const std::vector<std::string>& arguments,
                 std::chrono::milliseconds grace);

}  // namespace shardwright::executor
