// Starts the ranks of a run as processes of this machine and watches over them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardwright::executor {

struct LaunchResult {
  // Of the rank that failed first, as a shell gives it; kBadInputStatus if any rank met bad input;
  // 0: none failed.
  int status = 0;
  bool stopped = false;  // a signal asked this process to stop
  // Ranks that were ended from outside or fell silent, ascending: the machine lost them.
  std::vector<std::int64_t> lost;
};

struct LaunchLimits {
  // A rank without a sign of life (heartbeat.hpp) for so long has failed.
  std::optional<std::chrono::milliseconds> silence;
  // Between the word to stop and the end by force.
  std::chrono::milliseconds grace{2000};
};

// The status of a run that lost a rank: it fell silent, or was ended from outside.
inline constexpr int kLostStatus = 1;
// … and of one whose input is bad, whichever rank ended first for it.
inline constexpr int kBadInputStatus = 2;

// The status, as a shell gives it, of a process that a signal asked to stop while or after it
// launched ranks; 0: none did.
int stop_status();

// Runs this program once for each of `world` ranks, with the same arguments, and waits for them.
// They meet at a rendezvous of this process, at the loopback address. When one fails or falls
// silent, that is said on standard error, and the others are stopped; none outlives the launcher.
// Bad input that ranks have told of (bad_input.hpp) is said once.
LaunchResult launch_ranks(std::int64_t world, const std::vector<std::string>& arguments,
                          const LaunchLimits& limits);

}  // namespace shardwright::executor
