// What a stack runs, against what a plan asks of it.
#pragma once

#include <string>
#include <vector>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright {

// What the plan asks for and the stack's profile does not list among what it runs, a sentence each.
// Empty where the stack runs the plan. A search proposes no such plan; a simulation of one tells
// what it would take on the same kernels.
std::vector<std::string> unsupported_by(const StackSpec& stack, const Plan& plan);

// The overlap of a plan that does not say otherwise: what the stack can hide, it hides, which never
// makes a step longer.
OverlapSwitches usual_overlap(const StackSpec& stack, const ModelSpec& model);

}  // namespace shardwright
