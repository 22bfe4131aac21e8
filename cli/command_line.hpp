// The command line as a whole: reads the arguments, runs the subcommand, and turns errors into
// messages and exit codes.
#pragma once

#include <string>
#include <vector>

#include "cli/output/embedding.hpp"
#include "cli/output/exit_code.hpp"
#include "core/base/error.hpp"

namespace shardwright::cli {

// `arguments` does not include the name of the program.
ExitCode run_command_line(const std::vector<std::string>& arguments);

struct EmbeddedResult {
  ExitCode code = ExitCode::Ok;
  std::string output;
  // What the command would have printed to standard error, progress aside.
  std::string messages;
  // Bad input has a file or option as its source, and all that is wrong with it as problems. They
  // are empty for wrong usage that only the messages explain.
  std::string source;
  std::vector<Problem> problems;
};

// Runs the command on this thread inside another program; it neither prints nor handles signals.
// Several threads may run commands at a time. Commands that replace the process (`run`, `gui`) are
// refused as bad input.
EmbeddedResult run_embedded(const std::vector<std::string>& arguments, const Embedding& host);

// The subcommands and their options as a JSON document, from which the Python module makes its
// functions.
std::string command_description();

}  // namespace shardwright::cli
