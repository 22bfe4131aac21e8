// Plans of runs that others launched: what `import` reads of launch scripts and of the arguments in
// logs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cli/options/scenario_options.hpp"
#include "cli/output/page.hpp"
#include "planner/import/megatron_plan.hpp"

namespace shardwright::cli {

// Returns the file of a checkpoint's folder that holds the arguments of its run, and for a folder
// of checkpoints that of the last one; none for other paths.
std::optional<std::string> file_of_checkpoint(const std::string& path);

// The positional parameters of scripts in the text of an option, as a shell splits it into words;
// without values where the text is empty. Throws InputError where quotes are not closed.
planner::ScriptParameters script_parameters(const std::string& option, const std::string& text);

// Returns none for traces and for logs without arguments. Throws InputError where the file cannot
// be read or its script not be followed.
std::optional<planner::LaunchArguments> find_launch(const std::string& file,
                                                    const planner::ScriptParameters& parameters);

struct LaunchedPlan {
  std::string file;
  planner::ImportedPlan imported;
};

// The cluster and the stack are those of the options or else those that an export names. Throws
// InputError.
LaunchedPlan launched_plan(const planner::LaunchArguments& launch, const ScenarioOptions& options);

nlohmann::ordered_json to_json(const LaunchedPlan& plan);
void add_launched_plan(Page& page, const LaunchedPlan& plan);

}  // namespace shardwright::cli
