// What the source of a published measurement leaves open of its plan, chosen as its authors tune
// it.
#pragma once

#include <string>
#include <vector>

#include "core/spec/scenario.hpp"
#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// Sets the micro-batch, the virtual pipeline stages (where the schedule is open, too) and the
// recomputation that `row` does not name to those of the fastest plan that fits into memory, by the
// analytic rung; where none fits, to one sequence, one stage and full recomputation. `filled_in`
// tells. The scenario's plan has 1, 1 and None there, and keeps all plan rules.
void choose_as_tuned(const TrainingRow& row, Scenario& scenario,
                     std::vector<std::string>& filled_in);

}  // namespace shardwright::sim
