// How a published run was cut over its ranks.
#pragma once

#include <string>
#include <vector>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"
#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// Whether the row or its stack's habits say how the model is cut over tensor and pipeline ranks.
bool tells_degrees(const TrainingRow& row, const ModelSpec& model, const StackSpec& stack);

// Data, tensor, pipeline, context and expert degrees and the chunks of a stage. The one that the
// source leaves open follows from the accelerators; replicas that are counted otherwise are counted
// anew. False and a reason if they cannot be told.
bool set_degrees(const TrainingRow& row, const ModelSpec& model, const StackSpec& stack, Plan& plan,
                 std::vector<std::string>& filled_in, std::string& reason);

}  // namespace shardwright::sim
