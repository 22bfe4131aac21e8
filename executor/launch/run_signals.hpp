// The signals that a run listens to: SIGUSR1 asks it to save its state, SIGTERM to save it and end,
// SIGINT and SIGHUP to end at once. SIGUSR2 says that the ranks which an elastic run has lost are
// back.
#pragma once

#include <csignal>

#include "executor/runtime/rank_trainer.hpp"

namespace shardwright::executor {

// The exit status, as in a shell, of a run that SIGTERM ended.
inline constexpr int kTerminatedStatus = 128 + SIGTERM;

// Remembers SIGUSR1 and SIGUSR2, which by default end a process, from now on.
void listen_for_requests();
// Remembers SIGTERM. Called by a rank that is about to train: before, it has nothing to save.
void listen_for_termination();
// Remembers all stop signals. Called by the launcher.
void listen_for_stop_signals();
// Gives the stop signals their defaults back and ignores the others until the program listens for
// them again. Async-signal-safe, for the child of a fork.
void forget_signals();

// Returns the exit status, as in a shell, of a process that a remembered signal asked to stop; 0 if
// none did.
int stop_status();
// True if that signal is not SIGTERM.
bool asked_to_end_at_once();
// True if SIGUSR1, or SIGUSR2, came since the last call.
bool take_save_request();
bool take_growth_request();

// What SIGTERM and SIGUSR1 ask of a rank's run.
RankRequests requests_by_signals();

}  // namespace shardwright::executor
