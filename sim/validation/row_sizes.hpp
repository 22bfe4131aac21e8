// Sizes of a model that a source leaves open.
#pragma once

#include <string>
#include <vector>

#include "core/spec/model_spec.hpp"
#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// Vocabulary of GPT-2's tokenizer, padded as Megatron-LM does.
constexpr std::int64_t kUsualVocab = 51200;

// Fills in what a row does not say of its model, and returns the shipped model that it is, or null.
// That is the one of its name (model_names.hpp) unless stated sizes differ, else the one of its
// sizes; layers may be cut off, vocabularies replaced and key-value heads changed without it
// becoming another. What that leaves open follows by the usual proportions, and the sequence from
// the figures or from the length that the model was trained with. `filled_in` says each.
const ModelSpec* complete_model(TrainingRow& row, std::vector<std::string>& filled_in);

// What nothing tells; empty if the model is complete.
std::string missing_size(const ModelRow& row);

}  // namespace shardwright::sim
