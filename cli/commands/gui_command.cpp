// shardwright gui
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/command.hpp"
#include "cli/options/common_options.hpp"
#include "cli/programs/sibling_programs.hpp"
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

// Declares the options here, so that --help needs neither the program of the window nor Qt.
void add_gui_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("gui", "Open the window, with any files that are named");
  command->footer("Example:\n  shardwright gui plan.json other-plan.json");
  const auto files = std::make_shared<std::vector<std::string>>();
  add_option(
      *command, "files", *files, "FILE...",
      "Plans, search results, clusters, models, run and batch profiles, timelines, traces, or "
      "folders of runs; two of one kind are compared");
  const auto folder = std::make_shared<std::string>();
  const CLI::Option* screenshots =
      command
          ->add_option("--screenshots", *folder,
                       "Draw each view of the worked example into a folder and exit")
          ->type_name("FOLDER");
  add_options_file(*command);
  command->callback([files, folder, screenshots, &action] {
    std::vector<std::string> arguments;
    if (screenshots->count() > 0) arguments = {"--screenshots", *folder};
    arguments.emplace_back("--");
    arguments.insert(arguments.end(), files->begin(), files->end());
    action = [arguments] { return gui(arguments); };
  });
}

}  // namespace shardwright::cli
