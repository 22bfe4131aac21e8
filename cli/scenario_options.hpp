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
};

// Loads the parts and applies the fields that options give. `command` names the command line in
// errors. Throws InputError.
ChosenScenario choose_scenario(const ScenarioOptions& options, const std::string& command);

}  // namespace shardwright::cli
