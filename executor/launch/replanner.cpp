#include "executor/launch/replanner.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "core/base/error.hpp"

namespace shardwright::executor {
namespace {

// Runs a program with its standard output thrown away; its wait status.
int run_quietly(std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t process = 0;
  const int error =
      posix_spawn(&process, pointers.front(), &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw RuntimeFailure(
        fmt::format("{} cannot be started: {}", pointers.front(), strerror(error)));
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

}  // namespace

void replan(const std::string& planner, const std::string& plan, std::int64_t ranks,
            const std::filesystem::path& out) {
  const int status = run_quietly({planner, "replan", plan, "--ranks", fmt::format("{}", ranks),
                                  "--out", out.string(), "--force", "--no-progress"});
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw RuntimeFailure(fmt::format("there is no plan for the {} ranks that are left", ranks));
}

}  // namespace shardwright::executor
