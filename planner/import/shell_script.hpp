// The commands of a shell script as they would be called, without running anything.
//
// Assignments, arrays, quotes, continued lines, ${NAME:-default} and sums of integers are followed
// in the order of the text, and so are conditions that compare known values. The commands of other
// conditions and of loops are read once. The output of commands and variables of the environment
// are unknown and empty.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "planner/import/shell_variables.hpp"

namespace shardwright::planner {

using ShellCommand = std::vector<std::string>;

// An assignment that a condition, a loop or the outcome of a command decides about.
struct ConditionalAssignment {
  // In the script, from 1.
  std::int64_t line = 0;
  // The assignment as the script has it, cut at its first line's end.
  std::string text;
  // The value that the variable has without it; empty if none.
  std::string otherwise;
  // The first value of a loop's variable, which stands for all; empty for other assignments.
  std::string first_value;
};

struct ShellScript {
  std::vector<ShellCommand> commands;
  // The texts of comments, without their mark.
  std::vector<std::string> comments;
  // The same texts read as commands, with the variables that are set at the end of the script.
  std::vector<ShellCommand> commented_commands;
  // Variables that were used and have no value.
  std::set<std::string> unset;
  // Variables without a value that were used with a default, and the default.
  std::map<std::string, std::string> defaults;
  // Of variables that were used with another value than they have without a condition, by name, the
  // last assignment.
  std::map<std::string, ConditionalAssignment> conditional;
  // Variables that a condition asks for, and that count as not set.
  std::set<std::string> taken_as_unset;
  // By flag, "--seq-length", why its value is empty: "$2, a positional parameter that … states".
  std::map<std::string, std::string> without_value;
  // The commands whose output was used and is not known, $(date +%F), as the script has them.
  std::set<std::string> substitutions;
};

// Throws InputError, with the line, where quotes or brackets are not closed, and where values grow
// beyond 1 MiB. `source` names the script.
ShellScript read_shell_script(std::string_view text, const std::string& source,
                              const ScriptParameters& parameters = {});

}  // namespace shardwright::planner
