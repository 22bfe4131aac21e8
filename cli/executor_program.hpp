// The program `shardwright-executor`, which `run` and `probe` start.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/stop_signals.hpp"

namespace shardwright::cli {

// It takes this process over, with its streams, signals and exit status; returns only by throwing
// RuntimeFailure.
[[noreturn]] void become_executor(std::vector<std::string> arguments);

// Bad input, which the executor has told people of: the command exits with 2 and adds nothing.
class ExecutorRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Runs it to its end; its messages go to standard error. Throws ExecutorRefused, and RuntimeFailure
// if it fails or is not there. A signal that is `held` stops it, a second one at once; the first
// one is then delivered after all, when the object ends.
void run_executor(std::vector<std::string> arguments, const StopSignalsHeld& held);

}  // namespace shardwright::cli
