// Lowers a plan: from (model, plan, stack) to the Program of one training step.
//
// The blocks of a layer come from block_set.hpp, the order of microbatches from the pipeline
// schedule. What is added here are the calls in their order, pipeline messages, data-parallel
// gathers and reductions, and the optimizer.
#pragma once

#include "core/lowering/block_set.hpp"
#include "core/program/program.hpp"
#include "core/schedule/pipeline_schedule.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright {

// The plan must be one that breaks no rule of this model.
Program lower(const ModelSpec& model, const Plan& plan, const StackSpec& stack);

// Lowers from parts that several plans share: `blocks` of a plan that cuts layers alike, `schedule`
// of this plan.
Program lower(const ModelSpec& model, const Plan& plan, const StackSpec& stack,
              const BlockSet& blocks, const PipelineSchedule& schedule);

}  // namespace shardwright
