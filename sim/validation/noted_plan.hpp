// What the notes of a published measurement say of its plan where its fields are empty.
#pragma once

#include <string>
#include <vector>

#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// Fills in recomputation, sequence parallelism, the degree of context parallelism, which has to
// agree with the other degrees, sharding (noted_sharding.hpp), batch and sequences
// (noted_batch.hpp). Each is listed in `filled_in`, "recompute: full, by the notes"; a
// field that the source states stays.
void complete_plan(TrainingRow& row, std::vector<std::string>& filled_in);

}  // namespace shardwright::sim
