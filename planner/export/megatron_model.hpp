// A model as arguments of Megatron-LM.
#pragma once

#include "planner/export/argument_list.hpp"
#include "planner/export/plan_export.hpp"

namespace shardwright::planner {

// Properties without an argument in Megatron-LM become notes: such a model needs its own layer
// specification (--spec).
void add_model_arguments(const Scenario& scenario, ArgumentList& arguments, PlanExport& result);

}  // namespace shardwright::planner
