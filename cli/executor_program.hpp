// The program `shardwright-executor`, which `run` and `probe` start.
#pragma once

#include <string>
#include <vector>

namespace shardwright::cli {

// It takes this process over, with its streams, signals and exit status; returns only by throwing
// RuntimeFailure.
[[noreturn]] void become_executor(std::vector<std::string> arguments);

// Runs it to its end; its messages go to standard error. Throws RuntimeFailure if it fails or is
// not there.
void run_executor(std::vector<std::string> arguments);

}  // namespace shardwright::cli
