#include "cli/programs/sibling_programs.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "cli/output/embedding.hpp"
#include "cli/output/exit_code.hpp"
#include "cli/programs/child_process.hpp"
#include "core/base/error.hpp"
#include "core/base/stop_signals.hpp"

namespace shardwright::cli {
namespace {

bool host_asks_to_stop() {
  return current_embedding() != nullptr && current_embedding()->stop.stop_requested();
}

// Waits for the end of the executor and returns its status.
int status_at_end(ChildProcess& executor, const StopSignalsHeld& held) {
  constexpr std::chrono::milliseconds kBetweenLooks{20};
  int asked_by = 0;
  bool asked_by_host = false;
  while (true) {
    if (const std::optional<int> status = executor.poll()) {
      if (asked_by != 0) raise(asked_by);
      return *status;
    }
    const int signal = held.take(kBetweenLooks);
    if (host_asks_to_stop() && !std::exchange(asked_by_host, true)) executor.send(SIGTERM);
    if (signal == 0) continue;
    executor.send(asked_by == 0 ? SIGTERM : SIGKILL);
    if (asked_by == 0) asked_by = signal;
  }
}

}  // namespace

std::string own_program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

std::string find_sibling(const std::string& name, const std::string& build_folder) {
  std::error_code error;
  auto here = std::filesystem::path(own_program()).parent_path();
  if (const Embedding* host = current_embedding(); host != nullptr && !host->programs.empty())
    here = host->programs;
  for (const auto& candidate : {here / name, here.parent_path() / build_folder / name}) {
    if (std::filesystem::exists(candidate, error)) return candidate.string();
  }
  return {};
}

std::string find_executor() {
  std::string executor = find_sibling("shardwright-executor", "executor");
  if (executor.empty()) throw RuntimeFailure("the program shardwright-executor is not installed");
  return executor;
}

void become(const std::string& program, std::vector<std::string> arguments) {
  if (current_embedding() != nullptr) {
    throw InputError("shardwright", {{"", "a command that replaces the process",
                                      "a command that returns (start this one as a program)"}});
  }
  arguments.insert(arguments.begin(), program);
  execv(program.c_str(), argument_pointers(arguments).data());
  throw RuntimeFailure(program + " cannot be started: " + std::strerror(errno));
}

void become_executor(std::vector<std::string> arguments) {
  become(find_executor(), std::move(arguments));
}

void run_executor(std::vector<std::string> arguments, const StopSignalsHeld& held) {
  const std::string executor = find_executor();
  arguments.insert(arguments.begin(), executor);
  ChildProcess process(arguments, "", held);
  const int status = status_at_end(process, held);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  if (WIFEXITED(status) && WEXITSTATUS(status) == static_cast<int>(ExitCode::BadInput))
    throw ExecutorRefused("the executor refused its input");
  throw RuntimeFailure(WIFEXITED(status)
                           ? fmt::format("{} failed with status {}", executor, WEXITSTATUS(status))
                           : fmt::format("{} was ended by signal {}", executor, WTERMSIG(status)));
}

}  // namespace shardwright::cli
