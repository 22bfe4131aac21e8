// The software of a published measurement.
#pragma once

#include <string>
#include <vector>

#include "core/spec/model_spec.hpp"
#include "core/spec/stack_spec.hpp"
#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// The profile of the row's stack with the attention kernel that it states. A stack without a
// profile falls to the generic one of its family, an unknown one to the generic profile;
// `filled_in` says so.
StackSpec stack_of_row(const TrainingRow& row, std::vector<std::string>& filled_in);

// What of the stack depends on the model, the device or the year: loss, optimizer and FP8 weights.
void refine_stack(const TrainingRow& row, const ModelSpec& model, StackSpec& stack,
                  std::vector<std::string>& filled_in);

// Whether a shipped profile stands for the row's software by its name (stack_name.hpp).
bool has_own_profile(const TrainingRow& row);

}  // namespace shardwright::sim
