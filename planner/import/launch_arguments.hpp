// The arguments of Megatron-LM with which a run was launched, from a launch script or from the log
// in which the run printed them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/import/shell_variables.hpp"

namespace shardwright::planner {

struct LaunchArguments {
  // The file that they were read from.
  std::string source;
  // True if all arguments are there, with the values that nobody stated: of a log. Those of a
  // script leave out what has Megatron-LM's own value.
  bool complete = false;
  // By the names of Megatron-LM's namespace: "num_layers". Switches are "True" or "False", the
  // words of lists have a blank between them.
  std::map<std::string, std::string> values;
  // The processes that are started in all.
  std::optional<std::int64_t> ranks;
  // What stands in the place of that number where it is none; "" if nothing.
  std::string found_ranks;
  // The places that state it.
  std::string places_of_ranks = "--nnodes and --nproc-per-node of torchrun";
  // The program that a script runs, "pretrain_gpt.py"; "" where it is not known.
  std::string program;
  // The first comment of a script; "" if there is none.
  std::string title;
  // By name, why a script's argument has no value: what it is that nobody knows here.
  std::map<std::string, std::string> without_value;
  // What the script takes from its environment and nobody knows here, in words: variables that have
  // their default, and commands whose output is left out.
  std::vector<std::string> unknown;
};

// True if the text has the arguments that a model needs, whether a command uses them or not.
bool states_a_model(std::string_view text);

// True if the text seems to launch or to configure a training run, of whatever framework.
bool states_a_launch(std::string_view text);

// Returns none where the text launches no model by Megatron-LM's arguments and logs none. Throws
// InputError where a script that does cannot be followed.
std::optional<LaunchArguments> find_launch_arguments(std::string_view text,
                                                     const std::string& source,
                                                     const ScriptParameters& parameters = {});

}  // namespace shardwright::planner
