// The signals that ask a process to stop: SIGINT, SIGTERM and SIGHUP.
#pragma once

#include <array>
#include <chrono>
#include <csignal>

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

}  // namespace shardwright
