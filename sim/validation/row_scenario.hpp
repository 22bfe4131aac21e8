// Turns a published measurement into a scenario that can be simulated.
//
// A row holds what its source says. What it leaves open is filled in: the architecture's details
// from the shipped model of the same sizes, the hardware from the profile library, the rest of the
// plan from the stack's habits. Each filled field is said in words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/spec/scenario.hpp"
#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

struct RowScenario {
  std::optional<Scenario> scenario;
  std::vector<std::string> filled_in;  // "zero_stage: 1, the stack's default"
  std::string reason;                  // why there is no scenario
  std::vector<std::string> open;       // fields of the plan that the source leaves open
  bool chosen_to_fit = false;          // open parts of the plan are the fastest of those that fit
};

RowScenario scenario_of(const TrainingRow& stated);

// The scenario of the row `id` of `file`. Throws InputError if there is no such row or it cannot be
// simulated. `filled_in` (may be null) receives what the row left open.
Scenario scenario_of_row(const std::string& file, const std::string& id,
                         std::vector<std::string>* filled_in = nullptr);

}  // namespace shardwright::sim
