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

#include "core/base/argument_pointers.hpp"
#include "core/base/error.hpp"
#include "core/base/standard_streams.hpp"
#include "executor/launch/local_launcher.hpp"

namespace shardwright::executor {
namespace {

constexpr std::chrono::milliseconds kBetweenReplanLooks{5};

// Runs a program with its standard output thrown away; its wait status. It is stopped where this
// process is, and ends with it.
int run_quietly(std::vector<std::string> arguments) {
  const std::vector<char*> pointers = argument_pointers(arguments);
  const pid_t launcher = getpid();
  const pid_t process = fork();
  if (process < 0) throw RuntimeFailure(std::string("no process: ") + std::strerror(errno));
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) _exit(1);
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    execv(pointers.front(), pointers.data());
    tell(fmt::format("{} cannot be started: {}", pointers.front(), std::strerror(errno)));
    _exit(1);
  }
  int status = 0;
  while (waitpid(process, &status, WNOHANG) == 0) {
    if (stop_status() != 0) kill(process, SIGTERM);
    std::this_thread::sleep_for(kBetweenReplanLooks);
  }
  return status;
}

}  // namespace

void replan(const std::string& planner, const std::string& plan, std::int64_t ranks,
            const std::filesystem::path& out) {
  const int status = run_quietly({planner, "replan", plan, "--ranks", fmt::format("{}", ranks),
                                  "--out", out.string(), "--force", "--no-progress"});
  if (stop_status() != 0) throw RuntimeFailure("stopped while a plan was looked for");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw RuntimeFailure(fmt::format("there is no plan for the {} ranks that are left", ranks));
}

}  // namespace shardwright::executor
