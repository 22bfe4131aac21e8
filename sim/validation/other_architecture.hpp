// Models that are no causal decoders of text with attention, and how their weights are multiplied.
#pragma once

#include <string>

#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// Which part of the row's model is not modelled, as a reason to skip it: state-space, recurrent or
// linear-attention layers, encoders, pictures and sound, weights of a few bits. By the model's name
// (its family) or by what the notes say of it and do not deny, compare with or leave out ("the
// vision tower is not loaded"). Empty for what is priced as a decoder.
std::string other_architecture(const TrainingRow& row);

}  // namespace shardwright::sim
