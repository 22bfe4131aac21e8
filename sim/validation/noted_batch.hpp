// The batch and the sequences that the notes of a published measurement state where its fields are
// empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// Fills in the length of the sequences ("context length 32k"), the micro-batch ("MBS=2") and the
// global batch ("GBS=512", "4M tokens per batch", whose tokens the length divides). What the notes
// say in two ways, guess, or say of other runs or of what the model could do is not taken; nor is a
// batch that the stated replicas do not divide, which is listed. A field that the source states
// stays.
void complete_batch(TrainingRow& row, std::vector<std::string>& filled_in);

// Microbatches of a replica that a step adds up: "gradient accumulation 8", "GAS=8".
std::optional<std::int64_t> accumulation_in(const TrainingRow& row);

}  // namespace shardwright::sim
