// The plan of a published measurement.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/spec/cluster_spec.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"
#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// Lets a plan count embedding and head as layers where its chunks divide the layers only so.
void count_ends_as_layers(const ModelSpec& model, Plan& plan);

// The source says nothing of recomputation, or nothing that is known.
bool leaves_recomputation_open(const TrainingRow& row);

// `reason` is set where the row leaves open what nothing else tells, or asks for what a plan cannot
// say; `filled_in` says what the stack's habits stand in for. Where micro-batch,
// virtual stages or recomputation are left open, they are 1, 1 and None (see tuned_plan.hpp).
std::optional<Plan> plan_of_row(const TrainingRow& row, const ModelSpec& model,
                                const StackSpec& stack, std::vector<std::string>& filled_in,
                                std::string& reason);

}  // namespace shardwright::sim
