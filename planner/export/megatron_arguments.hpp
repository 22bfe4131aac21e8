// Plans as arguments of Megatron-LM's pretrain_gpt.py, its model included.
//
// Names and the combinations that Megatron-LM refuses are those of megatron/training/arguments.py
// at commit 000c4ac24f61 of https://github.com/NVIDIA/Megatron-LM (2025).
#pragma once

#include "planner/export/plan_export.hpp"

namespace shardwright::planner {

// A Bash array MEGATRON_ARGS, with the launch line as a comment. Data, tokenizer, learning rate and
// the length of the run are left to the launch script.
PlanExport megatron_arguments(const Scenario& scenario);

}  // namespace shardwright::planner
