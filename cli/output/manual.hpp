// The manual page, the completion and the description of the command line, all made from the
// description that `--help` prints.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace shardwright::cli {

// A page of section 1, as man reads it.
std::string manual_page(const CLI::App& app);

// The same as a JSON document: {"commands": [{"words": ["models", "show"], "about", "options":
// [{"name", "value", "help", "group", "positional", "flag", "repeatable", "required"}]}]}.
std::string command_description(const CLI::App& app);

// Calls `visit` for the command and each subcommand below it, with its words: "shardwright models
// show". Entries of no group are hidden from help, and here.
void walk(const CLI::App& app, const std::string& words,
          const std::function<void(const CLI::App&, const std::string&)>& visit);

// True for an option that takes several values or may be stated several times.
bool is_repeatable(const CLI::Option& option);

std::vector<const CLI::Option*> shown_options(const CLI::App& app, bool positional);

}  // namespace shardwright::cli
