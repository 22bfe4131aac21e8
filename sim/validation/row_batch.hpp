// How many sequences a published step worked on.
#pragma once

#include <string>
#include <vector>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"
#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// Whether what is compared is a rate or a share of the peak, for which the batch matters little.
bool measures_rate(const TrainingRow& row);

// Whether the row says the global batch, or its figures fix it: a step's time together with a rate.
bool tells_batch(const TrainingRow& row);

// Micro-batch, global batch and sequence of a plan whose degrees are set. False and a reason if
// nothing tells the batch.
bool set_batch(const TrainingRow& row, const ModelSpec& model, const StackSpec& stack, Plan& plan,
               std::vector<std::string>& filled_in, std::string& reason);

}  // namespace shardwright::sim
