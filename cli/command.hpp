// What the subcommands share: how they join the command line, and how they hand over their result.
//
// To add a subcommand, write `cli/NAME_command.cpp` with one function `add_NAME_command` and add it
// to the list in command_line.cpp.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/exit_code.hpp"
#include "cli/page.hpp"
#include "cli/terminal.hpp"

namespace CLI {
class App;
}

namespace shardwright::cli {

// What the parsed command line asks for. A subcommand sets it when it is chosen.
using Action = std::function<ExitCode()>;

// Options that every subcommand has.
struct CommonOptions {
  std::string json;  // file for the machine form of the result; "-": standard output, instead of
                     // the text; empty: none
  bool force = false;
  bool markdown = false;
  bool no_progress = false;
  ColourChoice colour = ColourChoice::Auto;
};

void add_common_options(CLI::App& command, CommonOptions& options);

// An empty page in the style that the options ask for.
Page new_page(const CommonOptions& options);

// True if a progress line should be drawn.
bool show_progress(const CommonOptions& options);

// Prints the page, or the JSON in its place; writes the JSON to its file. `stdout_taken`: the
// command has printed another document, so the page is left out.
void deliver(const CommonOptions& options, const Page& page, const nlohmann::ordered_json& document,
             bool stdout_taken = false);

// The first members of every document: {"schema": "shardwright/NAME", "version": 1,
// "tool_version": …}.
nlohmann::ordered_json new_document(const std::string& name);

void add_plan_command(CLI::App& app, Action& action);
void add_replan_command(CLI::App& app, Action& action);
void add_scale_command(CLI::App& app, Action& action);
void add_simulate_command(CLI::App& app, Action& action);
void add_run_command(CLI::App& app, Action& action);
void add_gui_command(CLI::App& app, Action& action);
void add_probe_command(CLI::App& app, Action& action);
void add_calibrate_command(CLI::App& app, Action& action);
void add_explain_command(CLI::App& app, Action& action);
void add_compare_command(CLI::App& app, Action& action);
void add_export_command(CLI::App& app, Action& action);
void add_validate_command(CLI::App& app, Action& action);
void add_fit_command(CLI::App& app, Action& action);
void add_network_command(CLI::App& app, Action& action);
void add_models_command(CLI::App& app, Action& action);
void add_clusters_command(CLI::App& app, Action& action);
void add_stacks_command(CLI::App& app, Action& action);
void add_schema_command(CLI::App& app, Action& action);

}  // namespace shardwright::cli
