// The software of a published measurement.
#pragma once

#include <string>
#include <vector>

#include "core/spec/stack_spec.hpp"
#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// The profile of the row's stack with the attention kernel that it states. A stack without a
// profile falls to the generic one of its family, an unknown one to the generic profile;
// `filled_in` says so.
StackSpec stack_of_row(const TrainingRow& row, std::vector<std::string>& filled_in);

}  // namespace shardwright::sim
