// The ways to cut a model over tensor, pipeline and expert ranks that a row leaves open.
#pragma once

#include <vector>

#include "core/spec/scenario.hpp"
#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// The row with each pair of degrees: tensor parallelism inside of a node, by powers of two that
// divide the heads; pipelines of stages of equal depth. `parts` holds model, cluster and stack.
std::vector<TrainingRow> possible_cuts(const TrainingRow& row, const Scenario& parts);

// Whether the source says nothing of how the experts are spread over ranks. Stacks that shard in
// place of cutting do not spread them unless the notes say that tokens are exchanged.
bool leaves_experts_open(const TrainingRow& row, const Scenario& parts);

// The row with each degree of expert parallelism, in powers of two, that divides its experts.
std::vector<TrainingRow> possible_expert_cuts(const TrainingRow& row, const Scenario& parts);

}  // namespace shardwright::sim
