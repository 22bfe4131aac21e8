// Shipped models that arguments of Megatron-LM describe, by their sizes and by the tokenizer.
#pragma once

#include "planner/import/launch_arguments.hpp"
#include "planner/import/megatron_plan.hpp"
#include "planner/import/megatron_settings.hpp"

namespace shardwright::planner {

// Takes the shipped model of the same arguments, or names the model after its file; looks for the
// vocabulary where no argument states it, and pads it as the arguments say.
void identify_model(const LaunchArguments& launch, MegatronSettings& settings,
                    ImportedPlan& imported);

}  // namespace shardwright::planner
