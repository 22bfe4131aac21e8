// Plans with their models as arguments of Megatron-LM's pretrain_gpt.py.
//
// The names, and the combinations that Megatron-LM refuses, come from
// megatron/training/arguments.py at commit 000c4ac24f61 of https://github.com/NVIDIA/Megatron-LM
// (2025).
#pragma once

#include "planner/export/plan_export.hpp"

namespace shardwright::planner {

// Writes a Bash array MEGATRON_ARGS, with the launch line as a comment. Data, tokenizer, learning
// rate and the length of the run belong to the launch script.
PlanExport megatron_arguments(const Scenario& scenario);

}  // namespace shardwright::planner
