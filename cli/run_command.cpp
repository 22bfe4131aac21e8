// shardwright run
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/sibling_program.hpp"
#include "core/base/error.hpp"

namespace shardwright::cli {
namespace {

ExitCode run(const std::vector<std::string>& arguments) {
  const std::string executor = find_sibling("shardwright-executor", "executor");
  if (executor.empty()) throw RuntimeFailure("the program shardwright-executor is not installed");
  become(executor, arguments);
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
