#include "cli/programs/child_process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "core/base/error.hpp"

namespace shardwright::cli {

namespace {

// This process's variables with those of `changes`, which replace their namesakes.
std::vector<std::string> changed_environment(const std::vector<std::string>& changes) {
  std::vector<std::string> variables = changes;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string variable = *each;
    const std::string start = variable.substr(0, variable.find('=') + 1);
    const auto replaces = [&](const std::string& change) { return change.starts_with(start); };
    if (std::ranges::none_of(changes, replaces)) variables.push_back(variable);
  }
  return variables;
}

}  // namespace

ChildProcess::ChildProcess(std::vector<std::string> command, const std::string& log,
                           const StopSignalsHeld& held,
                           const std::vector<std::string>& environment) {
  constexpr int kMode = 0644;
  int output = STDERR_FILENO;
  if (!log.empty()) {
    output = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kMode);
    if (output < 0) throw RuntimeFailure(log + ": cannot be written: " + std::strerror(errno));
  }
  const std::vector<char*> pointers = argument_pointers(command);
  std::vector<std::string> variables = changed_environment(environment);
  const std::vector<char*> variable_pointers = argument_pointers(variables);
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ == 0) {
    // However the command ends, the program then ends what it has started, and itself.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    held.release();
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    execve(pointers.front(), pointers.data(), variable_pointers.data());
    _exit(1);
  }
  const int reason = errno;
  if (!log.empty()) close(output);
  if (process_ < 0) throw RuntimeFailure(std::string("no process: ") + std::strerror(reason));
}

ChildProcess::~ChildProcess() {
  if (status_) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

std::optional<int> ChildProcess::poll() {
  int status = 0;
  if (!status_ && waitpid(process_, &status, WNOHANG) == process_) status_ = status;
  return status_;
}

void ChildProcess::send(int signal) const {
  if (!status_) kill(process_, signal);
}

}  // namespace shardwright::cli
