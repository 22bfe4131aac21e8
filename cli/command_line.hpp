// The command line as a whole: reads the arguments, runs the subcommand, and turns errors into
// messages and exit codes.
#pragma once

#include <string>
#include <vector>

#include "cli/output/exit_code.hpp"

namespace shardwright::cli {

// `arguments` does not include the name of the program.
ExitCode run_command_line(const std::vector<std::string>& arguments);

}  // namespace shardwright::cli
