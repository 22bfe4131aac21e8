// The manual page, the completion and the description of the command line, all made from the description that
// `--help` prints.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace shardwright::cli {

// A page of section 1, as man reads it.
std::string manual_page(const CLI::App& app);

// The same as a JSON document: {"commands": [{"words": ["models", "show"], "about", "options": [{"name", "value", "help",
// "group", "positional", "flag", "repeatable", "required"}]}]}.
std::string command_description(const CLI::App& app);

// A script for bash that completes subcommands and options, and file names everywhere else.
std::string bash_completion(const CLI::App& app);

}  // namespace shardwright::cli
