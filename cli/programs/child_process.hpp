// A program that this command starts, and which does not outlive it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/base/stop_signals.hpp"

namespace shardwright::cli {

class ChildProcess {
 public:
  // Starts the program `command.front()`. Its output and messages are added to the file `log`;
  // without one they go to standard error. `environment` are variables as NAME=VALUE that it sees
  // beside this process's, or in place of them. Throws RuntimeFailure.
  ChildProcess(std::vector<std::string> command, const std::string& log,
               const StopSignalsHeld& held, const std::vector<std::string>& environment = {});
  // Kills a program that still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Returns its wait status once it has ended.
  std::optional<int> poll();
  void send(int signal) const;

 private:
  pid_t process_ = -1;
  std::optional<int> status_;
};

}  // namespace shardwright::cli
