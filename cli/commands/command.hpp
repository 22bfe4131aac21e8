// The subcommands of the command line.
//
// To add a subcommand, write `cli/commands/NAME_command.cpp` with one function `add_NAME_command`,
// declare it here, and add it to the list in cli/command_line.cpp.
#pragma once

#include <functional>

#include "cli/options/common_options.hpp"
#include "cli/output/exit_code.hpp"

namespace CLI {
class App;
}

namespace shardwright::cli {

// The work that the parsed command line asks for. A subcommand sets it when it is chosen.
using Action = std::function<ExitCode()>;

void add_plan_command(CLI::App& app, Action& action);
void add_replan_command(CLI::App& app, Action& action);
void add_scale_command(CLI::App& app, Action& action);
void add_sweep_command(CLI::App& app, Action& action);
void add_simulate_command(CLI::App& app, Action& action);
void add_forecast_command(CLI::App& app, Action& action);
void add_run_command(CLI::App& app, Action& action);
void add_tune_command(CLI::App& app, Action& action);
void add_gui_command(CLI::App& app, Action& action);
void add_probe_command(CLI::App& app, Action& action);
void add_import_command(CLI::App& app, Action& action);
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
void add_support_command(CLI::App& app, Action& action);
void add_schema_command(CLI::App& app, Action& action);
void add_version_command(CLI::App& app, Action& action);

}  // namespace shardwright::cli
