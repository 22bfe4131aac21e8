// The other programs of Shardwright, which this command starts: `shardwright-executor` and
// `shardwright-gui`.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/stop_signals.hpp"

namespace shardwright::cli {

// `name` beside this program, where both are installed, or else in `build_folder` of a build tree.
// Empty if it is in neither place.
std::string find_sibling(const std::string& name, const std::string& build_folder);

// The file of this program.
std::string own_program();

// The program takes this process over, with its streams, signals and exit status. Throws
// RuntimeFailure if it cannot be started.
[[noreturn]] void become(const std::string& program, std::vector<std::string> arguments);

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
