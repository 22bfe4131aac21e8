// The options that every subcommand has, and the delivery of results as they ask.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/output/page.hpp"
#include "cli/output/terminal.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace shardwright {
struct ClusterSpec;
}

namespace shardwright::cli {

struct CommonOptions {
  // File for the machine-readable form of the result. "-" prints it to standard output in place of
  // the text; an empty name writes none.
  std::string json;
  // File for the page as HTML; empty for none.
  std::string html;
  // The command line that gives the same result, without the options of its output.
  std::string invocation;
  // Replace output files that exist.
  bool force = false;
  bool markdown = false;
  bool no_progress = false;
  ColourChoice colour = ColourChoice::Auto;
};

// Adds --options, which the common options contain.
void add_options_file(CLI::App& command);

void add_common_options(CLI::App& command, CommonOptions& options);

// Adds an option or argument whose value help calls `type`. `group`: the heading above it in help.
CLI::Option* add_option(CLI::App& command, const std::string& name, std::string& value,
                        const char* type, const std::string& help, const char* group = "Options");
CLI::Option* add_option(CLI::App& command, const std::string& name,
                        std::vector<std::string>& values, const char* type, const std::string& help,
                        const char* group = "Options");

// Returns an empty page in the style that the options ask for.
Page new_page(const CommonOptions& options);
// A page about a cluster, which it calls accelerators by its word.
Page new_page(const CommonOptions& options, const ClusterSpec& cluster);

// True if progress is to be shown.
bool show_progress(const CommonOptions& options);

// Prints the page, or the JSON in its place, and writes the JSON to its file. `stdout_taken`: the
// command has printed another document to standard output, so the page is left out.
void deliver(const CommonOptions& options, const Page& page, const nlohmann::ordered_json& document,
             bool stdout_taken = false);

// The first members of every document: {"schema": "shardwright/NAME", "version": 1,
// "tool_version": …}.
nlohmann::ordered_json new_document(const std::string& name);

// "0.1.0"
std::string version();

// "shardwright 0.1.0 (git 1a2b3c4, GNU 12.2.0, Release)"
std::string version_line();

}  // namespace shardwright::cli
