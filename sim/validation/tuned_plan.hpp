// What the source of a published measurement leaves open of its plan, chosen as its authors tune
// it.
#pragma once

#include <string>
#include <vector>

#include "core/spec/scenario.hpp"
#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// Sets what `row` does not name of micro-batch, virtual pipeline stages (where the schedule is
// open, too) and recomputation: the least recomputation with which any plan fits into memory, and
// of those plans the fastest by the analytic rung; where none fits, one sequence, one stage and
// full recomputation. `filled_in` tells. The scenario's plan has 1, 1 and None there, and keeps all
// plan rules. True where something was chosen from what fits. A row that ran out of memory keeps
// the stack's habits, for a choice of what fits would contradict it.
bool choose_as_tuned(const TrainingRow& row, Scenario& scenario,
                     std::vector<std::string>& filled_in);

// Memory of the plan with the choices that take the least of what the row leaves open.
Bytes least_memory(const TrainingRow& row, Scenario scenario);

// Whether the row leaves open any part of its plan that choose_as_tuned chooses for its time.
bool leaves_plan_open(const TrainingRow& row, const Scenario& scenario);

// Fields of the plan that a row leaves open, apart from its degrees: `stated` as its source has it,
// `completed` with what its notes say.
std::vector<std::string> open_fields(const TrainingRow& stated, const TrainingRow& completed,
                                     const Scenario& scenario);

}  // namespace shardwright::sim
