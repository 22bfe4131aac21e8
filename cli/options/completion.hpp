// Completion of the command line in a shell, made from the description that `--help` prints.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace shardwright::cli {

// A script that completes subcommands, options and the names that options take, and file names
// everywhere else.
std::string bash_completion(const CLI::App& app);

// The same for zsh, which runs it as bash would.
std::string zsh_completion(const CLI::App& app);

// The names of a kind, one a line: "models", "clusters", "stacks", "runs", and "fields", which
// --set takes, or "plan-fields", which it takes where a command states a plan. The scripts ask for
// them while they complete. Throws InputError if there is no such kind.
std::string names_text(const std::string& kind);

}  // namespace shardwright::cli
