// Whether a published measurement is that of a step which trains all weights of a model.
#pragma once

#include <string>

#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// Why it is not; empty if it may be one. Notes count where they say what was measured ("inference
// throughput", "PPO"), not where they name it in passing ("the model is used for inference").
std::string no_whole_step(const TrainingRow& row);

}  // namespace shardwright::sim
