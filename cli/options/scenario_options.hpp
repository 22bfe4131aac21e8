// How a subcommand is told which plan to look at: a plan file, or model, cluster and degrees on
// the command line.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/spec/scenario.hpp"

namespace CLI {
class App;
}

namespace shardwright::cli {

struct ScenarioOptions {
  std::string plan_file;  // "-": standard input; empty: none
  std::string row;        // "FILE:ID", a published measurement; empty: none
  std::string model, cluster, stack;
  std::string gpus;
  std::string kernels;                        // a table of measured kernels; empty: none
  std::map<std::string, std::string> fields;  // of the plan, by JSON key
  std::vector<std::string> settings;          // "key=value", for fields without an option
};

void add_scenario_options(CLI::App& command, ScenarioOptions& options);

struct ChosenScenario {
  Scenario scenario;
  // What profiles or a row left open and the tool filled in, in words.
  std::vector<std::string> filled_in;
  // What the stack does not run of the plan, which is simulated all the same.
  std::vector<std::string> notes;
};

// Loads the parts and applies the fields that options give. `command` names the command line in
// errors. Throws InputError.
ChosenScenario choose_scenario(const ScenarioOptions& options, const std::string& command);

// Prints the notes on standard error, a line each, behind the name of the command.
void print_notes(const std::string& command, const std::vector<std::string>& notes);

}  // namespace shardwright::cli
