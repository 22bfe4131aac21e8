// The communication groups of a plan: how many ranks each has, and whom it joins.
#pragma once

#include <cstdint>

#include "core/op/op.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"

namespace shardwright {

// Members of one group of this kind; 1 means that its collectives vanish.
std::int64_t group_size(Group group, const Plan& plan);

// True if parameters of the model are split over more than one rank, so that they are gathered
// before use (FSDP).
bool shards_parameters(const ModelSpec& model, const Plan& plan);

// The axis under which a group's exposed time is reported: tensor, context, expert, data or
// pipeline.
Axis axis_of(Group group);

}  // namespace shardwright
