// shardwright run
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "core/base/error.hpp"

namespace shardwright::cli {
namespace {

// Beside this program where both are installed, in the executor's folder of a build tree.
std::filesystem::path find_executor() {
  std::error_code error;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const auto& candidate :
       {here / "shardwright-executor", here.parent_path() / "executor" / "shardwright-executor"}) {
    if (std::filesystem::exists(candidate, error)) return candidate;
  }
  throw RuntimeFailure("the program shardwright-executor is not beside " + here.string());
}

// The executor takes this process over, with its streams, signals and exit status.
ExitCode run(std::vector<std::string> arguments) {
  const std::string executor = find_executor().string();
  arguments.insert(arguments.begin(), executor);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execv(executor.c_str(), pointers.data());
  throw RuntimeFailure(executor + " cannot be started: " + std::strerror(errno));
}

}  // namespace

void add_run_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("run", "Train a model under a plan, one process a rank on this machine");
  // The executor knows its options, --help too.
  command->set_help_flag();
  command->prefix_command();
  command->callback([command, &action] {
    action = [arguments = command->remaining()] { return run(arguments); };
  });
}

}  // namespace shardwright::cli
