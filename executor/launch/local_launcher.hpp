// Starts the ranks of a run as processes of this machine and watches over them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace shardwright::executor {

struct LaunchResult {
  int status = 0;        // of the rank that failed first, as a shell gives it; 0: none failed
  bool stopped = false;  // a signal asked this process to stop
};

// Runs this program once for each of `world` ranks, with the same arguments, and waits for them.
// They meet at a rendezvous of this process, at the loopback address. When one fails the others are
// told to stop, and killed if they have not stopped after `grace`; none outlives the launcher.
LaunchResult launch_ranks(std::int64_t world, const std::vector<std::string>& arguments,
                          std::chrono::milliseconds grace);

}  // namespace shardwright::executor
