// The model of a published measurement.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/spec/model_spec.hpp"
#include "core/spec/stack_spec.hpp"
#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// A row gives sizes only, which row_sizes.hpp completes. What else a lowering needs (kind of
// attention, norms, biases, position embeddings) comes from the shipped model that the row means
// (`known`) or, where there is none, from the two habits of the field: gated feed-forward blocks
// come with RMSNorm and rotary positions and without biases, ungated ones with LayerNorm, learned
// positions and biases. `filled_in` says so; `reason` is set instead where the model cannot be
// expressed.
std::optional<ModelSpec> model_of_row(const TrainingRow& row, const ModelSpec* known,
                                      std::vector<std::string>& filled_in, std::string& reason);

// Dropout is a habit of the trainer, not of the architecture: GPTs drop 0.1 in Megatron-LM unless
// told otherwise, and nothing in PyTorch's trainers.
void set_dropout(const StackSpec& stack, ModelSpec& model, std::vector<std::string>& filled_in);

}  // namespace shardwright::sim
