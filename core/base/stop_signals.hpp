// Argument lists for programs that are started, and the signals that ask a process to stop.
#pragma once

#include <array>
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

namespace shardwright {

inline constexpr std::array kStopSignals = {SIGINT, SIGTERM, SIGHUP};

// Keeps back, from this thread and those that it starts, the ones that are not ignored. What came
// meanwhile is delivered when the object ends: without a handler it ends the process, after
// whatever was to be tidied up before.
class StopSignalsHeld {
 public:
  StopSignalsHeld();
  ~StopSignalsHeld();
  StopSignalsHeld(const StopSignalsHeld&) = delete;
  StopSignalsHeld& operator=(const StopSignalsHeld&) = delete;

  // Takes a signal that has come, or comes before `limit` is over; 0: none. It counts as delivered.
  int take(std::chrono::milliseconds limit) const;

  // Lets them through again, as in the child of a fork; safe there.
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
