// The optimizer that the notes of a published measurement name.
#pragma once

#include <string>
#include <vector>

#include "core/spec/stack_spec.hpp"
#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// Sets what is kept of each parameter: moments of 8-bit Adam (1 byte each, arXiv 2110.02861), in
// bf16, of Lion and Muon (one), of SGD and Adafactor (none, or the momentum; Adafactor's factors
// are a row and a column, arXiv 1804.04235), and no fp32 copy where the notes deny it. Lists each,
// and what of it is not simulated.
void set_optimizer_by_notes(const TrainingRow& row, StackSpec& stack,
                            std::vector<std::string>& filled_in);

}  // namespace shardwright::sim
