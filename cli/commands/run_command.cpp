// shardwright run
#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/commands/command.hpp"
#include "cli/options/options_file.hpp"
#include "cli/output/output_file.hpp"
#include "cli/programs/sibling_programs.hpp"
#include "core/base/error.hpp"
#include "core/base/standard_streams.hpp"

namespace shardwright::cli {

void add_run_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "run", "Train a model under a plan on this machine, with one process per rank");
  command->footer(
      R"(The program shardwright-executor has the options; its --help lists them. --options FILE
takes them from a file in YAML or JSON.
Example:
  shardwright run plan.json --data corpus.txt --steps 40 --out run)");
  // The executor parses all options, including --help.
  command->set_help_flag();
  command->prefix_command();
  command->callback([command, &action] {
    action = [command, arguments = command->remaining()]() mutable -> ExitCode {
      const bool asks_help = std::ranges::find(arguments, "--help") != arguments.end();
      arguments = with_undeclared_options(arguments, "plan");
      arguments.insert(arguments.begin(), {"--planner", own_program(), "--local"});
      try {
        become_executor(arguments);
      } catch (const RuntimeFailure& error) {
        if (!asks_help) throw;
        print_message(error.what());
        write_stdout(command->help());
        return ExitCode::Ok;
      }
    };
  });
}

}  // namespace shardwright::cli
