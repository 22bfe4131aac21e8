#include "executor/launch/run_signals.hpp"

#include "core/base/stop_signals.hpp"

namespace shardwright::executor {
namespace {

// The exit status of a process that a signal ended is this plus the signal's number.
constexpr int kSignalStatus = 128;

// The signal that asked this process to stop, or 0.
volatile std::sig_atomic_t stop_signal = 0;
volatile std::sig_atomic_t save_asked = 0, growth_asked = 0;

// A scheduler may send SIGTERM several times; it does not take back that the run is to end at once.
extern "C" void remember_signal(int signal) {
  if (signal == SIGUSR1)
    save_asked = 1;
  else if (signal == SIGUSR2)
    growth_asked = 1;
  else if (stop_signal == 0 || signal != SIGTERM)
    stop_signal = signal;
}

bool take(volatile std::sig_atomic_t& request) {
  if (request == 0) return false;
  request = 0;
  return true;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

void listen_for_requests() {
  for (const int signal : {SIGUSR1, SIGUSR2}) handle(signal, remember_signal);
}

void listen_for_termination() {
  handle(SIGTERM, remember_signal);
}

void listen_for_stop_signals() {
  for (const int signal : kStopSignals) handle(signal, remember_signal);
}

void forget_signals() {
  for (const int signal : kStopSignals) handle(signal, SIG_DFL);
  for (const int signal : {SIGUSR1, SIGUSR2}) handle(signal, SIG_IGN);
}

int stop_status() {
  return stop_signal == 0 ? 0 : kSignalStatus + stop_signal;
}

bool asked_to_end_at_once() {
  return stop_signal != 0 && stop_signal != SIGTERM;
}

bool take_save_request() {
  return take(save_asked);
}

bool take_growth_request() {
  return take(growth_asked);
}

RankRequests requests_by_signals() {
  RankRequests requests;
  requests.save = take_save_request();
  requests.stop = stop_status() == kTerminatedStatus;
  return requests;
}

}  // namespace shardwright::executor
