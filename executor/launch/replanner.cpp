#include "executor/launch/replanner.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/stop_signals.hpp"
#include "executor/launch/local_launcher.hpp"
#include "executor/telemetry/log.hpp"

namespace shardwright::executor {
namespace {

constexpr std::chrono::milliseconds kReplanPollInterval{5};

// Runs a program without standard output and returns its wait status. The program is stopped when
// this process is, and does not outlive it.
int run_quietly(std::vector<std::string> arguments) {
  const std::vector<char*> pointers = argument_pointers(arguments);
  const pid_t launcher = getpid();
  const pid_t process = fork();
  if (process < 0)
    throw RuntimeFailure(std::string("cannot start a process: ") + std::strerror(errno));
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) _exit(1);
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    execv(pointers.front(), pointers.data());
    log_error(fmt::format("{} cannot be started: {}", pointers.front(), std::strerror(errno)));
    _exit(1);
  }
  int status = 0;
  while (waitpid(process, &status, WNOHANG) == 0) {
    if (stop_status() != 0) kill(process, SIGTERM);
    std::this_thread::sleep_for(kReplanPollInterval);
  }
  return status;
}

}  // namespace

void replan(const std::string& planner, const std::string& plan, std::int64_t ranks,
            const std::filesystem::path& out) {
  const int status = run_quietly({planner, "replan", plan, "--ranks", fmt::format("{}", ranks),
                                  "--out", out.string(), "--force", "--no-progress"});
  if (stop_status() != 0) throw RuntimeFailure("stopped during the search for a plan");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw RuntimeFailure(fmt::format("no plan fits the {} ranks that are left", ranks));
}

}  // namespace shardwright::executor
