// The command line as a whole: reads the arguments, runs the subcommand, turns what goes wrong into
// messages and exit codes.
#pragma once

#include <string>
#include <vector>

#include "cli/output/exit_code.hpp"

namespace shardwright::cli {

// `arguments` without the program's name.
ExitCode run_command_line(const std::vector<std::string>& arguments);

}  // namespace shardwright::cli
