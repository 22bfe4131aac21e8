// The options that select a plan: a plan file, a published measurement, or model, cluster and
// degrees on the command line.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/spec/scenario.hpp"
#include "validation/prediction_errors.hpp"

namespace CLI {
class App;
}

namespace shardwright::cli {

struct ScenarioOptions {
  // "-": standard input; empty: none.
  std::string plan_file;
  // "FILE:ID", a published measurement; empty: none.
  std::string row;
  std::string model, cluster, stack;
  std::string gpus;
  // A table of measured kernels; empty: none.
  std::string kernels;
  // Values of the plan's fields, by JSON key.
  std::map<std::string, std::string> fields;
  // "key=value", for fields without an option.
  std::vector<std::string> settings;
  // The command can simulate stages that lie on several pools (core/spec/pools.hpp).
  bool takes_pools = false;
};

void add_scenario_options(CLI::App& command, ScenarioOptions& options);

// The stated options that change a plan, as on a command line: "--tp 2".
std::vector<std::string> stated_plan_options(const ScenarioOptions& options);

struct ChosenScenario {
  Scenario scenario;
  // The class of its prediction: that of the measurement, or of a stated plan.
  std::optional<validation::PredictionClass> prediction_class;
  // Values that profiles or a measurement leave open and the tool assumed, in words.
  std::vector<std::string> filled_in;
  // Parts of the plan that the stack does not run; they are simulated nevertheless.
  std::vector<std::string> notes;
};

// Loads the parts and applies the fields that options give. `command` names the command line in
// errors. Throws InputError, also if the plan's stages lie on several pools and the command does
// not take pools.
ChosenScenario choose_scenario(const ScenarioOptions& options, const std::string& command);

// Prints the notes on standard error, one per line, after the name of the command.
void print_notes(const std::string& command, const std::vector<std::string>& notes);

}  // namespace shardwright::cli
