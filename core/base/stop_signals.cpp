#include "core/base/stop_signals.hpp"

#include <ctime>

namespace shardwright {

StopSignalsHeld::StopSignalsHeld() {
  sigemptyset(&held_);
  for (const int signal : kStopSignals) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    // An ignored signal that was blocked would be returned by take().
    if (action.sa_handler != SIG_IGN) sigaddset(&held_, signal);
  }
  pthread_sigmask(SIG_BLOCK, &held_, &before_);
}

StopSignalsHeld::~StopSignalsHeld() {
  release();
}

int StopSignalsHeld::take(std::chrono::milliseconds limit) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const std::chrono::nanoseconds rest = limit - seconds;
  const timespec wait{static_cast<std::time_t>(seconds.count()), static_cast<long>(rest.count())};
  const int signal = sigtimedwait(&held_, nullptr, &wait);
  return signal < 0 ? 0 : signal;
}

void StopSignalsHeld::release() const {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace shardwright
