// The command inside another program, as the Python module has it.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/output/exit_code.hpp"
#include "core/base/error.hpp"

namespace shardwright::cli {

// What a command asks of the program around it.
struct Embedding {
  // Called from the command's threads, at most ten times a second. `share` is the part of the work that is done, 0 to 1;
  // the text says how far it is.
  std::function<void(double share, const std::string& text)> progress;
  // Takes the place of Ctrl-C: the command ends with what it has found.
  std::stop_token stop;
};

struct EmbeddedResult {
  ExitCode code = ExitCode::Ok;
  std::string output;
  // What the command would have printed to standard error, progress aside.
  std::string messages;
  // Of bad input: the file or option, and all that is wrong with it. Empty for wrong usage, which the messages tell.
  std::string source;
  std::vector<Problem> problems;
};

// Runs the command on this thread; it neither prints nor handles signals. Several threads may run commands at a time.
// Commands that replace the process (`run`, `gui`) are refused as bad input.
EmbeddedResult run_embedded(const std::vector<std::string>& arguments, const Embedding& host);

// The embedding of the command that runs on this thread; nullptr if the command is a program of its own.
const Embedding* current_embedding();

// The subcommands and their options as a JSON document, from which the Python module makes its functions.
std::string command_description();

}  // namespace shardwright::cli
