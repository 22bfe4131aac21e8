// Checks of a run's options against its model and plan.
#pragma once

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"

namespace shardwright::executor {

// False if replicas keep something between exchanges, which no checkpoint holds.
bool allows_checkpoints(const Plan& plan);

// Throws InputError if a run that keeps or reads checkpoints would lose what its replicas keep
// between exchanges.
void check_checkpoints(const Plan& plan, bool keeps);

// Throws InputError if the ranks cannot compute this weight's loss (TrainingOptions::balance_loss).
void check_balance_loss(const ModelSpec& model, const Plan& plan, double weight);

}  // namespace shardwright::executor
