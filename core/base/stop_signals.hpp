// Argument lists for programs that are started, and the signals that ask a process to stop.
#pragma once

#include <array>
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

namespace shardwright {

inline constexpr std::array kStopSignals = {SIGINT, SIGTERM, SIGHUP};

// Blocks the stop signals that are not ignored, in this thread and those that it starts. One that
// came meanwhile is delivered when the object ends: without a handler it ends the process, which
// has tidied up by then.
class StopSignalsHeld {
 public:
  StopSignalsHeld();
  ~StopSignalsHeld();
  StopSignalsHeld(const StopSignalsHeld&) = delete;
  StopSignalsHeld& operator=(const StopSignalsHeld&) = delete;

  // Waits for a signal, at most `limit`, and returns it as delivered; 0 if none came.
  int take(std::chrono::milliseconds limit) const;

  // Unblocks the signals. Async-signal-safe, for the child of a fork.
  void release() const;

 private:
  sigset_t held_{}, before_{};
};

// Arguments or an environment for execv and posix_spawn: a pointer to each, ended by null. They
// point into `texts`.
inline std::vector<char*> argument_pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace shardwright
