// shardwright gui
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/sibling_program.hpp"
#include "core/base/error.hpp"

namespace shardwright::cli {
namespace {

ExitCode gui(const std::vector<std::string>& arguments) {
  const std::string program = find_sibling("shardwright-gui", "gui");
  if (program.empty()) {
    throw RuntimeFailure(
        "the program shardwright-gui is not installed; it is built where Qt 6 and QCustomPlot are "
        "(Debian: qt6-base-dev qt6-svg-dev libqcustomplot-dev)");
  }
  become(program, arguments);
}

}  // namespace

void add_gui_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("gui", "Explore plans in a window; opens the files that are named");
  // The window's program knows its options, --help too.
  command->set_help_flag();
  command->prefix_command();
  command->callback([command, &action] {
    action = [arguments = command->remaining()] { return gui(arguments); };
  });
}

}  // namespace shardwright::cli
