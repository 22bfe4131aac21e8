// A model as arguments of Megatron-LM.
#pragma once

#include "planner/export/argument_list.hpp"
#include "planner/export/plan_export.hpp"

namespace shardwright::planner {

// What Megatron-LM has no argument for becomes a note: such a model needs a layer specification of
// its own (--spec).
void add_model_arguments(const Scenario& scenario, ArgumentList& arguments, PlanExport& result);

}  // namespace shardwright::planner
