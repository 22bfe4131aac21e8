// Plans of which some fields are open: known are the others, and that the plan ran.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/spec/scenario.hpp"
#include "planner/search.hpp"

namespace shardwright::planner {

// The names, as in plan files, of the fields that can be open: those that a search chooses.
const std::vector<std::string>& searched_fields();

// The open fields and those that are open with them: `recompute_layers` with `recompute`, and the
// embedding and the head as layers with `stage_layers`.
std::vector<std::string> with_followers(const std::vector<std::string>& open);

// True if one of the open fields is a degree, so that the plan does not state the number of GPUs.
bool opens_world(const std::vector<std::string>& open);

// A request for plans on `gpus` GPUs that differ from the scenario's plan in the open fields only.
PlanRequest request_for_open(const Scenario& scenario, const std::vector<std::string>& open,
                             std::int64_t gpus);

// Returns the scenario's plan with the open fields of the fastest plan that fits. If the
// recomputation is open, plans that recompute less come first: people recompute no more than memory
// asks for, even where a larger micro-batch would gain by it. If no plan fits, the open fields are
// those of the one that comes closest. Returns nothing if no values of the open fields make a plan
// that obeys the rules. Throws InputError for what no plan can answer, such as too many GPUs.
std::optional<Plan> choose_open_fields(const Scenario& scenario,
                                       const std::vector<std::string>& open, std::int64_t gpus);

}  // namespace shardwright::planner
