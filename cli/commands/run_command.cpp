// shardwright run
#include <CLI/CLI.hpp>

#include "cli/commands/command.hpp"
#include "cli/programs/sibling_programs.hpp"

namespace shardwright::cli {

void add_run_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "run", "Train a model under a plan on this machine, with one process per rank");
  // The executor parses all options, including --help.
  command->set_help_flag();
  command->prefix_command();
  command->callback([command, &action] {
    action = [arguments = command->remaining()]() mutable -> ExitCode {
      arguments.insert(arguments.begin(), {"--planner", own_program(), "--local"});
      become_executor(arguments);
    };
  });
}

}  // namespace shardwright::cli
