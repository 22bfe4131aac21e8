// Checks what the executor can run. Everything else is lowered and simulated, but refused here.
#pragma once

#include <string>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright::executor {

// Throws InputError with everything that the executor lacks to train this model under this plan and
// stack, on the CPU or a GPU. `source` names the plan file.
void check_executable(const ModelSpec& model, const Plan& plan, const StackSpec& stack, bool on_gpu,
                      const std::string& source);

// Throws InputError if a run that keeps or reads checkpoints would lose what its replicas keep
// between exchanges.
void check_checkpoints(const Plan& plan, bool keeps);

// Throws InputError if the ranks cannot compute this weight's loss (TrainingOptions::balance_loss).
void check_balance_loss(const ModelSpec& model, const Plan& plan, double weight);

}  // namespace shardwright::executor
