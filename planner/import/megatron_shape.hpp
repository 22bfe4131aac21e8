// The model that Megatron-LM's arguments describe.
#pragma once

#include "core/spec/model_spec.hpp"
#include "planner/import/megatron_settings.hpp"

namespace shardwright::planner {

// What is left out has Megatron-LM's own value (megatron/training/arguments.py at commit
// 000c4ac24f61 of https://github.com/NVIDIA/Megatron-LM). The vocabulary is 0 where no argument
// states it: it is the tokenizer's. The name is empty.
ModelSpec model_of(MegatronSettings& settings);

}  // namespace shardwright::planner
