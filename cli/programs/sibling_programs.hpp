// The other programs of Shardwright, which this command starts: `shardwright-executor` and
// `shardwright-gui`.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/stop_signals.hpp"

namespace shardwright::cli {

// Returns the path of the program `name`: beside this program, where both are installed, or in
// `build_folder` of a build tree. Empty if it is in neither place.
std::string find_sibling(const std::string& name, const std::string& build_folder);

// Returns the path of this program.
std::string own_program();

// Returns the path of the executor. Throws RuntimeFailure if it is missing.
std::string find_executor();

// Replaces this process by the program, which keeps its streams and signals. Throws RuntimeFailure
// if the program cannot be started.
[[noreturn]] void become(const std::string& program, std::vector<std::string> arguments);

// Replaces this process by the executor. Throws RuntimeFailure if it cannot be started.
[[noreturn]] void become_executor(std::vector<std::string> arguments);

// Bad input that the executor has reported already: the command exits with 2 and adds nothing.
class ExecutorRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Runs the executor to its end; its messages go to standard error. Throws ExecutorRefused, and
// RuntimeFailure if it fails or is missing. A signal that is `held` stops it, a second one at once;
// the first one is delivered when `held` ends.
void run_executor(std::vector<std::string> arguments, const StopSignalsHeld& held);

}  // namespace shardwright::cli
