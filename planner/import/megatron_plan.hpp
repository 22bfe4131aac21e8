// Plans from the arguments with which Megatron-LM was launched: the way back of
// planner/export/megatron_arguments.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/spec/scenario.hpp"
#include "planner/import/launch_arguments.hpp"

namespace shardwright::planner {

struct ImportedPlan {
  Scenario scenario;
  // What the arguments leave open and was taken from elsewhere, in sentences.
  std::vector<std::string> assumed;
  // Flags that say nothing about the plan, or that nobody knows here; empty for complete arguments.
  std::vector<std::string> unread;
};

// The words by which an export names its parts, in a comment; "" where it does not.
struct ExportedNames {
  std::string model, cluster, stack;
};
ExportedNames exported_names(const LaunchArguments& launch);

// The model is the shipped one of the same arguments if there is one, so that its name and
// vocabulary are known; else one of its own, with the vocabulary of a shipped model of the same
// sizes. `ranks`: the number of accelerators, if it is not the one that the launch tells;
// `how_to_state_ranks` says in errors how the user states it. Throws InputError with every argument
// that is wrong or missing, and with the rules that the plan breaks.
ImportedPlan imported_plan(const LaunchArguments& launch, const ClusterSpec& cluster,
                           const StackSpec& stack, std::optional<std::int64_t> ranks,
                           const std::string& how_to_state_ranks = "a stated number of GPUs");

}  // namespace shardwright::planner
