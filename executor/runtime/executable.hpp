// What the executor can run. Everything else is lowered and simulated, and refused here by name.
#pragma once

#include <string>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright::executor {

// Throws InputError with all that the executor lacks for this plan of this model, as it is written
// under this stack, on the CPU or a GPU. `source` names the plan file.
void check_executable(const ModelSpec& model, const Plan& plan, const StackSpec& stack, bool on_gpu,
                      const std::string& source);

}  // namespace shardwright::executor
